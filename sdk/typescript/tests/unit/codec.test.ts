import { ExtData, encode as encodeMessagePack } from '@msgpack/msgpack';
import { describe, expect, test } from 'vitest';
import { decode, decodeError, decodeWithBreaks, encode } from '../../src/codec/messages.ts';
import { BadRequest, InternalError, REQUEST_ERRORS, RequestError, UnsupportedVersion } from '../../src/errors.ts';

describe('messages', () => {
  test('a field that is left out is written as its default', () => {
    const short = encode('AwaitTasks', { packages: [{ package_id: 'p' }] });
    const packages = [{ package_id: 'p', cursor: 0 }];
    const long = { v: 1, session: '-', packages, hold_s: 0, unwritable: false };
    expect(decode('AwaitTasks', short)).toEqual(long);
    expect(short).toEqual(encode('AwaitTasks', long));
  });

  test('a missing field is read as its default, and lists are not shared', () => {
    const reply = decode('AwaitTasksReply', encodeMessagePack({ packages: [] }));
    expect(reply).toMatchObject({ v: 1, packages: [], missing: {}, retry_after_s: 0 });
    reply.missing.p = 'gone';
    expect(decode('AwaitTasksReply', encodeMessagePack({ packages: [] })).missing).toEqual({});
    expect(decode('BlobRef', encodeMessagePack(['key', 7]))).toEqual(['key', 7, 0]);
  });

  test('unknown fields are ignored', () => {
    const body = encodeMessagePack({ package_id: 'p', from_the_future: { x: [1] } });
    expect(decode('StartTasksReply', body)).toEqual({ v: 1, package_id: 'p' });
    expect(decode('BlobRef', encodeMessagePack(['key', 7, 1, 'more']))).toEqual(['key', 7, 1]);
  });

  test('an integer is accepted for a float', () => {
    const body = encodeMessagePack({ packages: [], retry_after_s: 2 });
    expect(decode('AwaitTasksReply', body).retry_after_s).toBe(2);
  });

  test.each([
    [{}, /package_id is missing/],
    [{ package_id: 7 }, /package_id is 7, and must be of type string/],
    [[], /not a valid StartTasksReply/],
    [null, /StartTasksReply/],
  ])('%j is refused', (body, text) => {
    expect(() => decode('StartTasksReply', encodeMessagePack(body))).toThrow(BadRequest);
    expect(() => decode('StartTasksReply', encodeMessagePack(body))).toThrow(text);
  });

  test('bytes that are no MessagePack are refused', () => {
    expect(() => decode('HelloReply', new Uint8Array([0xc1]))).toThrow(BadRequest);
  });

  test('a newer protocol is refused', () => {
    expect(() => decode('StartTasksReply', encodeMessagePack({ v: 2 }))).toThrow(UnsupportedVersion);
  });

  test('a message with a wrong or missing field is not written', () => {
    expect(() => encode('Cursor', { package_id: 'p', cursor: 1.5 })).toThrow(/cursor is 1.5, and must be an integer/);
    expect(() => encode('Cursor', {} as never)).toThrow(/package_id is undefined/);
    expect(() => encode('InlineData', { type: 'inline', items: ['text' as never] })).toThrow(/must be bytes/);
  });
});

describe('messages with long lists', () => {
  const progress = { tasks: 1, done: 0, errors: 0 };
  const status = { package_id: 'p', state: 'running', cursor: 0, progress };
  const results = [[0, 'ok', 1, new Uint8Array([1]), ['key', 2 ** 40], 'x'.repeat(70_000)], Array(11).fill(null)];
  results[1]?.splice(0, 3, 1, 'error', 2);

  test('unknown fields of every kind are stepped over', async () => {
    const lengths = [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536];
    const unknown = [
      [0, -1, -33, 200, -200, 40_000, -40_000, 2 ** 31, -(2 ** 31), 2 ** 40, -(2 ** 40), 1.5, null, true, false],
      lengths.map((length) => 'x'.repeat(length)),
      lengths.map((length) => new Uint8Array(length)),
      lengths.map((length) => Array(length).fill(7)),
      [1, 2, 4, 8, 16, 3, 300, 70_000].map((length) => new ExtData(7, new Uint8Array(length))),
      lengths.map((length) => Object.fromEntries(Array.from({ length }, (_, key) => [`k${key}`, key]))),
    ];
    const body = encodeMessagePack({
      before: unknown,
      packages: [{ ...status, results, after: unknown }, status, { ...status, results: [] }],
      after: unknown,
    });
    const reply = await decodeWithBreaks('AwaitTasksReply', body);
    expect(reply).toEqual(decode('AwaitTasksReply', body));
    expect(reply.packages.map((each) => each.results.length)).toEqual([2, 0, 0]);
  });

  test.each([
    [
      {
        packages: [
          {
            ...status,
            results: [
              [0, 'ok', 1],
              [1, 7],
            ],
          },
        ],
      },
      /results.1 is 7, and must be of type string/,
    ],
    [{ packages: [{ ...status, results: [7] }] }, /results is 7, and must be of type object/],
    [{ packages: [{ ...status, results: {} }] }, /results: it is no array/],
    [{ packages: [7] }, /packages is 7/],
    [{ packages: 7 }, /packages: it is no array/],
    [[], /not a valid AwaitTasksReply/],
    [null, /AwaitTasksReply/],
    [{ v: 2, packages: [] }, /newer than/],
  ])('%j is refused', async (body, text) => {
    await expect(decodeWithBreaks('AwaitTasksReply', encodeMessagePack(body))).rejects.toThrow(text);
  });

  test('a message that is cut short at any byte is refused', async () => {
    const body = encodeMessagePack({ packages: [{ ...status, results: [[0, 'ok', 1, new Uint8Array(3)]] }] });
    for (let length = 0; length < body.length; length += 1) {
      await expect(decodeWithBreaks('AwaitTasksReply', body.subarray(0, length))).rejects.toThrow(BadRequest);
    }
  });

  test('bytes that are no MessagePack are refused in a list, too', async () => {
    const body = encodeMessagePack({ packages: [{ ...status, results: [[0, 'ok', 99]] }] });
    const bad = body.map((byte) => (byte === 99 ? 0xc1 : byte));
    await expect(decodeWithBreaks('AwaitTasksReply', bad)).rejects.toThrow(BadRequest);
  });
});

describe('errors', () => {
  test.each([...REQUEST_ERRORS])('%s comes back as itself', (code, Kind) => {
    const body = encode('ErrorReply', { code, message: 'why', retryable: Kind.retryable, retry_after_s: 2.5 });
    const error = decodeError(body, Kind.status);
    expect(error.constructor).toBe(Kind);
    expect(error).toMatchObject({ message: 'why', retryAfterS: 2.5, code, retryable: Kind.retryable });
    expect(error.name).toBe(Kind.name);
  });

  test('a code of a newer master is worth a retry only if its status says so', () => {
    const body = encode('ErrorReply', { code: 'new', message: 'why' });
    expect(decodeError(body, 503).constructor).toBe(InternalError);
    expect(decodeError(body, 418).constructor).toBe(RequestError);
  });

  test('the error quotes a page of another server', () => {
    const error = decodeError(Buffer.from('<html>Bad gateway'), 502);
    expect(error.constructor).toBe(InternalError);
    expect(error.message).toContain('<html>Bad gateway');
    expect(decodeError(Buffer.from('no'), 404).constructor).toBe(RequestError);
  });
});
