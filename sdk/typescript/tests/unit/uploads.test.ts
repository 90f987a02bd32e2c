import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { decode } from '../../src/codec/messages.ts';
import { Connection } from '../../src/connection.ts';
import { Events } from '../../src/events.ts';
import type { Draft, Message } from '../../src/messages.ts';
import { cut } from '../../src/multipart.ts';
import { upload } from '../../src/uploads.ts';
import { reply, ScriptedPlatform } from './scripted-platform.ts';

const BODY = new Uint8Array(70 * 1024 ** 2).fill(7);
const PARTS = cut(BODY);
const BLOB = { type: 'blob', body: BODY, crc32: crc32(BODY) } as const;
const DATA = { type: 'blob', blob: ['data/a/1', BODY.length, 0] };

/** A master and a store in one. A link ends with its purpose and with how often it was renewed. */
class Store extends ScriptedPlatform {
  readonly prepared: Message<'Upload'>[] = [];
  readonly asked: string[] = [];
  readonly there = new Map<string, number>();
  takesParts = true;
  /** Answers to the next requests by such a link, instead of carrying them out. */
  readonly faults = new Map<string, Response[]>();
  atOnce = 0;
  most = 0;

  override readonly fetch: typeof fetch = async (input, init) => {
    const url = String(input);
    const body = init?.body as Uint8Array;
    if (url.endsWith('/v1/prove')) {
      return new Response(null, { status: 404 }); // as masters up to 0.2.0
    }
    if (url.startsWith('http://master/')) {
      return this.#prepare(decode('PrepareUploads', body).uploads[0] as Message<'Upload'>);
    }
    const [name = ''] = url.replace('http://store/', '').split('?');
    this.asked.push(`${init?.method} ${url.replace('http://store/', '')}`);
    this.atOnce += 1;
    this.most = Math.max(this.most, this.atOnce);
    await new Promise((resolve) => setImmediate(resolve));
    this.atOnce -= 1;
    const fault = this.faults.get(name)?.shift();
    if (fault !== undefined) {
      return fault;
    }
    this.there.set(name, body.length);
    return new Response('', { headers: { ETag: `"${name}"` } });
  };

  #prepare(wanted: Message<'Upload'>): Response {
    this.prepared.push(wanted);
    const at = (name: string) => `http://store/${name}?${this.prepared.length}`;
    const parts: Draft<'Parts'> = {
      upload_id: 'u',
      links: wanted.parts_crc32.map((_, number) => ({ method: 'PUT', url: at(`part${number}`) })),
      complete: { method: 'POST', url: at('complete') },
    };
    const link = { method: 'PUT', url: at('whole') } as const;
    const prepared = { key: 'data/a/1', link, parts: this.takesParts && wanted.parts_crc32.length ? parts : null };
    return reply('PrepareUploadsReply', { uploads: [prepared] })() as Response;
  }
}

function send(store: Store): ReturnType<typeof upload> {
  return upload(new Connection({ endpoint: 'http://master', token: 't' }, {}, new Events(), store), BLOB);
}

const refusal = (code: string, status: number) => new Response(`<Error><Code>${code}</Code></Error>`, { status });

test('a large payload goes in parts, four at a time', async () => {
  const store = new Store();
  expect(await send(store)).toEqual(DATA);
  expect(store.prepared).toMatchObject([{ kind: 'data', size: BODY.length, crc32: BLOB.crc32, key: null }]);
  expect(store.prepared[0]?.parts_crc32).toEqual(PARTS.map((part) => crc32(part)));
  expect([...store.there.keys()].sort()).toEqual(['complete', 'part0', 'part1', 'part2', 'part3', 'part4']);
  expect(PARTS.map((_, number) => store.there.get(`part${number}`))).toEqual(PARTS.map(({ length }) => length));
  expect(store.most).toBe(4);
});

test('a store that takes no parts gets the whole', async () => {
  const store = new Store();
  store.takesParts = false;
  expect(await send(store)).toEqual(DATA);
  expect(store.there).toEqual(new Map([['whole', BODY.length]]));
});

test('a small payload is announced and sent whole', async () => {
  const store = new Store();
  const body = BODY.subarray(0, 1000);
  await upload(new Connection({ endpoint: 'http://master', token: 't' }, {}, new Events(), store), {
    type: 'blob',
    body,
    crc32: 5,
  });
  expect(store.prepared).toMatchObject([{ size: 1000, crc32: 5, parts_crc32: [] }]);
  expect(store.there).toEqual(new Map([['whole', 1000]]));
});

test('a part that fails is sent again, alone', async () => {
  const store = new Store();
  store.faults.set('part2', [refusal('SlowDown', 503)]);
  expect(await send(store)).toEqual(DATA);
  expect(store.asked.filter((each) => each.startsWith('PUT'))).toHaveLength(PARTS.length + 1);
  expect(store.prepared).toHaveLength(1);
});

test('links that have expired are renewed, and parts that the store has are not sent again', async () => {
  const store = new Store();
  store.faults.set('part4', [refusal('AccessDenied', 403)]);
  expect(await send(store)).toEqual(DATA);
  expect(store.prepared[1]).toMatchObject({ key: 'data/a/1', upload_id: 'u', parts_crc32: { length: PARTS.length } });
  expect(store.asked.slice(5)).toEqual(['PUT part4?2', 'POST complete?2']);
});

test('an error in an answer with status 200 fails the upload', async () => {
  const store = new Store();
  store.faults.set('complete', [refusal('InternalError', 200)]);
  expect(await send(store)).toEqual(DATA);
  expect(store.asked.slice(5)).toEqual(['POST complete?1', 'POST complete?1']);
});

test('a payload that the store has already is accepted', async () => {
  const store = new Store();
  store.faults.set('complete', [refusal('PreconditionFailed', 412)]);
  expect(await send(store)).toEqual(DATA);
  expect(store.asked.slice(5)).toEqual(['POST complete?1']);
});

test('a payload that is refused in parts goes whole, to the same place', async () => {
  const store = new Store();
  store.faults.set('complete', [refusal('NoSuchUpload', 404), refusal('NoSuchUpload', 404)]);
  expect(await send(store)).toEqual(DATA);
  expect(store.prepared.at(-1)).toMatchObject({ key: 'data/a/1', parts_crc32: [] });
  expect(store.asked.slice(5)).toEqual(['POST complete?1', 'POST complete?2', 'PUT whole?3']);
});
