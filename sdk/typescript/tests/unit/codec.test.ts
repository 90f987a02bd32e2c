import { encode as encodeMessagePack } from '@msgpack/msgpack';
import { describe, expect, test } from 'vitest';
import { decode, decodeError, encode } from '../../src/codec/messages.ts';
import { BadRequest, InternalError, REQUEST_ERRORS, RequestError, UnsupportedVersion } from '../../src/errors.ts';

describe('messages', () => {
  test('what is left out is written as its default', () => {
    const short = encode('AwaitTasks', { packages: [{ package_id: 'p' }] });
    const long = { v: 1, session: '-', packages: [{ package_id: 'p', cursor: 0 }], hold_s: 0 };
    expect(decode('AwaitTasks', short)).toEqual(long);
    expect(short).toEqual(encode('AwaitTasks', long));
  });

  test('what is missing is read as its default, and lists are not shared', () => {
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

  test('an integer is good where a float is meant', () => {
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

  test('a draft that is no message is refused', () => {
    expect(() => encode('Cursor', { package_id: 'p', cursor: 1.5 })).toThrow(/cursor is 1.5, and must be an integer/);
    expect(() => encode('Cursor', {} as never)).toThrow(/package_id is undefined/);
    expect(() => encode('InlineData', { type: 'inline', items: ['text' as never] })).toThrow(/must be bytes/);
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

  test('a page of somebody else is quoted', () => {
    const error = decodeError(Buffer.from('<html>Bad gateway'), 502);
    expect(error.constructor).toBe(InternalError);
    expect(error.message).toContain('<html>Bad gateway');
    expect(decodeError(Buffer.from('no'), 404).constructor).toBe(RequestError);
  });
});
