import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Connection } from '../../src/connection.ts';
import { ConfigurationError, InvalidToken, MasterUnreachable } from '../../src/errors.ts';
import { Events } from '../../src/events.ts';
import type { Fetch, FetchInit } from '../../src/http.ts';
import { hasChecksum, hashOf, mixed, proof } from '../../src/identity.ts';
import { error, reply, ScriptedPlatform } from './scripted-platform.ts';

const FILE = new URL('../../../protocol/vectors/proofs.json', import.meta.url);
const VECTORS = JSON.parse(readFileSync(FILE, 'utf8')) as Record<
  'token' | 'key' | 'client_nonce' | 'master_nonce' | 'proof' | 'credential',
  string
>[];
const TOKEN = VECTORS[1]?.token ?? '';
const EARLIER = 'a token of release 0.2.0';
const LINK = { method: 'PUT', url: '/blobs/k?signature=s', headers: {} } as const;

/** A master that proves itself, until a test makes it answer challenges in another way. */
class Master {
  readonly sent: [string, string | undefined][] = [];
  nonce = '0'.repeat(32);
  isThere = true;
  /** How many requests that are no challenge another process at its address answers with 404. */
  strangerAnswers = 0;
  challenged: ((asked: { nonce: string }) => Response) | undefined;
  readonly platform = new ScriptedPlatform();

  readonly token: string;

  constructor(token = TOKEN) {
    this.token = token;
  }

  connection(endpoint = 'http://master', token = this.token): Connection {
    return new Connection(
      { endpoint, token },
      { fetch: this.fetch, patienceS: 5 },
      new Events(() => undefined),
      this.platform,
    );
  }

  get credential(): string {
    const hash = hashOf(this.token);
    return `Cloudpar ${hash.toString('hex').slice(0, 16)}.${mixed(this.token, hash, this.nonce).toString('hex')}`;
  }

  readonly fetch: Fetch = async (url, init: FetchInit) => {
    const path = new URL(url).pathname;
    const shown = init.headers.Authorization;
    this.sent.push([path, shown]);
    if (!this.isThere) {
      throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
    }
    if (path.endsWith('/v1/prove')) {
      const asked = JSON.parse(new TextDecoder().decode(init.body)) as { nonce: string };
      return (this.challenged ?? this.#prove)(asked);
    }
    if (this.strangerAnswers > 0) {
      this.strangerAnswers -= 1;
      return new Response(null, { status: 404 });
    }
    if (path.startsWith('/blobs/')) {
      return new Response(null);
    }
    const isKnown = shown === this.credential || shown === `Bearer ${this.token}`;
    return (isKnown ? reply('HelloReply', { release: '0', role: 'user' }) : error('invalid_token', 401))();
  };

  readonly #prove = (asked: { nonce: string }): Response =>
    Response.json({
      v: 1,
      nonce: this.nonce,
      proof: proof(hashOf(this.token), asked.nonce, this.nonce).toString('hex'),
    });
}

const noRoute = () => new Response(null, { status: 404 });
const aWrongProof = () => Response.json({ v: 1, nonce: '1'.repeat(32), proof: '2'.repeat(64) });
const aPage = () => new Response('<html>');
const aRefusal = () => error('invalid_token', 401)() as Response;

test.each(VECTORS)('proofs and credentials are those of Python: $token', (vector) => {
  const hash = hashOf(vector.token);
  expect(hash.toString('hex').slice(0, 16)).toBe(vector.key);
  expect(proof(hash, vector.client_nonce, vector.master_nonce).toString('hex')).toBe(vector.proof);
  expect(`${vector.key}.${mixed(vector.token, hash, vector.master_nonce).toString('hex')}`).toBe(vector.credential);
});

test('a token with a typing error is refused before it is sent', () => {
  expect(hasChecksum(TOKEN)).toBe(true);
  expect(hasChecksum(EARLIER)).toBe(false);
  const atTheEnd = [TOKEN.slice(0, -1), `${TOKEN}0`, TOKEN.replace(/.$/, '!')];
  const atTheStart = [TOKEN.slice(1), TOKEN.slice('cloudpar_'.length), ` ${TOKEN}`, TOKEN.replace('c', 'C')];
  for (const wrong of [...atTheEnd, ...atTheStart]) {
    expect(() => hasChecksum(wrong)).toThrow(ConfigurationError);
  }
  expect(() => new Master().connection('http://master', TOKEN.slice(1, -1))).not.toThrow();
  expect(() => new Master().connection('http://master', TOKEN.slice(0, -1))).toThrow(/typing error: copy it again/);
});

describe('over plain HTTP', () => {
  test('the master proves itself once, before the first request', async () => {
    const master = new Master();
    const connection = master.connection();
    await connection.call('hello', {});
    await connection.call('hello', {});
    await connection.put(LINK, new Uint8Array([1]));
    expect(master.sent).toEqual([
      ['/v1/prove', undefined],
      ['/v1/hello', master.credential],
      ['/v1/hello', master.credential],
      ['/blobs/k', undefined],
    ]);
  });

  test.each([TOKEN, EARLIER])('a process in the place of a master gets challenges only: %s', async (token) => {
    for (const challenged of [noRoute, aWrongProof, aPage, aRefusal]) {
      const master = new Master(token);
      const connection = master.connection();
      await connection.call('hello', {});
      master.isThere = false; // the requests that were running end
      await expect(connection.call('hello', {})).rejects.toThrow(MasterUnreachable);
      master.sent.length = 0;
      master.isThere = true;
      master.challenged = challenged;
      const call = connection.call('hello', {});
      await expect(call).rejects.toThrow(/a process answers at this address that does not know the token/);
      await expect(call).rejects.toThrow(MasterUnreachable);
      expect(new Set(master.sent.map(String))).toEqual(new Set(['/v1/prove,']));
    }
  });

  test.each([
    [noRoute, MasterUnreachable, /does not prove that it knows the token \(HTTP status 404\).*or use https/],
    [aPage, MasterUnreachable, /does not prove that it knows the token/],
    [aWrongProof, InvalidToken, /this token is unknown at http:\/\/master/],
    [aRefusal, InvalidToken, /because of invalid_token/],
  ])('a server that has never proved itself gets no token of the new form', async (challenged, kind, text) => {
    const master = new Master();
    master.challenged = challenged;
    const call = master.connection().call('hello', {});
    await expect(call).rejects.toThrow(text);
    await expect(call).rejects.toThrow(kind);
    expect(master.sent).toEqual([['/v1/prove', undefined]]);
  });

  test('a master without the route gets an earlier token, and no further challenge', async () => {
    const master = new Master(EARLIER);
    master.challenged = noRoute;
    const connection = master.connection();
    await connection.call('hello', {});
    await connection.call('hello', {});
    const hello = ['/v1/hello', `Bearer ${EARLIER}`];
    expect(master.sent).toEqual([['/v1/prove', undefined], hello, hello]);
  });

  test('a proof is good for a second', async () => {
    const master = new Master();
    const connection = master.connection();
    await connection.call('hello', {});
    await master.platform.sleep(2, new AbortController().signal);
    await connection.call('hello', {});
    expect(master.sent.map(([path]) => path)).toEqual(['/v1/prove', '/v1/hello', '/v1/prove', '/v1/hello']);
  });

  test('a refusal by a process that has taken the place of the master since its proof ends nothing', async () => {
    const master = new Master();
    const connection = master.connection();
    await connection.call('hello', {});
    master.strangerAnswers = 1;
    await connection.call('hello', {});
    master.strangerAnswers = 1;
    await connection.put(LINK, new Uint8Array([1]));
    const [first, prove, hello, link] = ['/v1/prove', '/v1/prove', '/v1/hello', '/blobs/k'];
    expect(master.sent.map(([path]) => path)).toEqual([first, hello, hello, prove, hello, link, prove, link]);
  });

  test('a restarted master that refuses the credential of the earlier process proves itself again', async () => {
    const master = new Master();
    const connection = master.connection();
    await connection.call('hello', {});
    master.nonce = 'f'.repeat(32);
    await connection.call('hello', {});
    const paths = master.sent.map(([path]) => path);
    expect(paths).toEqual(['/v1/prove', '/v1/hello', '/v1/hello', '/v1/prove', '/v1/hello']);
  });
});

test('over TLS the token is sent as it is, without a challenge', async () => {
  const master = new Master();
  await master.connection('https://master').call('hello', {});
  expect(master.sent).toEqual([['/v1/hello', `Bearer ${TOKEN}`]]);
});
