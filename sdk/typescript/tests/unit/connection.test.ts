import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, test, vi } from 'vitest';
import { decode } from '../../src/codec/messages.ts';
import { Connection } from '../../src/connection.ts';
import { CloudparError, InternalError, InvalidToken, MasterUnreachable, RequestError } from '../../src/errors.ts';
import { EVENT_CHANNEL, Events, type PoolEvent } from '../../src/events.ts';
import type { Link } from '../../src/messages.ts';
import { type Answer, error, reply, ScriptedPlatform, silence } from './scripted-platform.ts';

const STARTED = reply('StartTasksReply', { package_id: 'p' });
const ORDER = {
  idempotency_key: 'a key',
  n: 1,
  code: { hash: '0'.repeat(64), reference: 'a:b' },
  data: { type: 'range', start: 0, step: 1 },
  codec: 'msgpack',
  python: '',
} as const;

function connect(...answers: Answer[]): [Connection, ScriptedPlatform] {
  const scripted = new ScriptedPlatform(...answers);
  const quiet = new Events(() => undefined);
  return [new Connection({ endpoint: 'http://master/', token: 'secret' }, {}, quiet, scripted), scripted];
}

describe('calls', () => {
  test('carry the token and the message', async () => {
    const [connection, { sent }] = connect(STARTED);
    expect(await connection.call('start_tasks', ORDER)).toEqual({ v: 1, package_id: 'p' });
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatchObject({ url: 'http://master/v1/start_tasks', method: 'POST' });
    expect(sent[0]?.headers.get('authorization')).toBe('Bearer secret');
    expect(sent[0]?.headers.get('content-type')).toBe('application/msgpack');
    expect(decode('StartTasks', sent[0]?.body ?? new Uint8Array())).toMatchObject(ORDER);
  });

  test('are repeated unchanged, after growing delays, while the error is retryable', async () => {
    const faults = [silence, error('internal', 500), error('unavailable', 503), error('rate_limited', 429), silence];
    const [connection, { sent, slept }] = connect(STARTED, ...faults, STARTED);
    await connection.call('start_tasks', ORDER);
    await connection.call('start_tasks', ORDER);
    expect(sent).toHaveLength(7);
    expect(new Set(sent.map(({ body }) => Buffer.from(body).toString('hex'))).size).toBe(1);
    expect(slept).toEqual([0.02, 0.04, 0.08, 0.0225, 0.02]);
  });

  test('wait for at least as long as the master asks', async () => {
    const [connection, { slept }] = connect(error('rate_limited', 429, 7), STARTED);
    await connection.call('start_tasks', ORDER);
    expect(slept).toEqual([7.875]);
  });

  test('are not repeated when the master refuses', async () => {
    const [connection, { sent }] = connect(error('invalid_token', 401));
    await expect(connection.call('hello', {})).rejects.toThrow(new InvalidToken('because of invalid_token'));
    expect(sent).toHaveLength(1);
  });

  test('to a place without a master fail within 10 s', async () => {
    const [connection, scripted] = connect(silence);
    const call = connection.call('hello', {});
    await expect(call).rejects.toBeInstanceOf(MasterUnreachable);
    await expect(call).rejects.toThrow(
      /no master answers at http:\/\/master: connect ECONNREFUSED; check the endpoint/,
    );
    expect(scripted.now()).toBeLessThan(10);
  });

  test('to a server that is no master fail at once', async () => {
    const [connection, { sent }] = connect(() => new Response('<html>', { status: 404 }));
    await expect(connection.call('hello', {})).rejects.toThrow(/not from a Cloud Parallelizer master/);
    expect(sent).toHaveLength(1);
  });

  test('to a master that went away fail after the patience', async () => {
    const [connection, scripted] = connect(STARTED, silence);
    await connection.call('start_tasks', ORDER);
    await expect(connection.call('start_tasks', ORDER)).rejects.toThrow(/waited \d+ s for it \(patienceS: 300\)/);
    expect(scripted.now()).toBeGreaterThan(290);
    expect(scripted.now()).toBeLessThanOrEqual(300);
  });

  test('to a master that fails each time fail with its error', async () => {
    const [connection] = connect(STARTED, error('internal', 500));
    await connection.call('start_tasks', ORDER);
    await expect(connection.call('start_tasks', ORDER)).rejects.toThrow(new InternalError('because of internal'));
  });

  test('end when the connection is closed', async () => {
    const [connection, { sent }] = connect(() => {
      connection.close();
      return silence();
    });
    await expect(connection.call('hello', {})).rejects.toThrow(
      new CloudparError('the pool was closed while this call was running'),
    );
    await expect(connection.call('hello', {})).rejects.toThrow('the pool is closed and takes no more calls');
    expect(sent).toHaveLength(1);
  });
});

describe('events', () => {
  const events: PoolEvent[] = [];
  const reporting = (...answers: Answer[]): [Connection, ScriptedPlatform] => {
    events.length = 0;
    const scripted = new ScriptedPlatform(...answers);
    const heard = new Events((event) => events.push(event));
    return [new Connection({ endpoint: 'http://master', token: 't' }, {}, heard, scripted), scripted];
  };

  test('report a master that does not answer, and that it is back', async () => {
    const away = Array.from({ length: 8 }, () => silence);
    const [connection] = reporting(STARTED, ...away, STARTED);
    await connection.call('start_tasks', ORDER);
    expect(events).toEqual([]);
    await connection.call('start_tasks', ORDER);
    expect(events).toMatchObject([
      { type: 'master_away', endpoint: 'http://master', message: 'connect ECONNREFUSED' },
      { type: 'master_back', endpoint: 'http://master', awayS: expect.any(Number) },
    ]);
  });

  test('report a request that waits long because the account is at a limit, once a minute', async () => {
    const busy = Array.from({ length: 6 }, () => error('rate_limited', 429, 2));
    const [connection] = reporting(STARTED, ...busy, STARTED);
    await connection.call('start_tasks', ORDER);
    await connection.call('start_tasks', ORDER);
    const message = 'because of rate_limited';
    expect(events).toMatchObject([{ type: 'request_delayed', waitedS: expect.any(Number), message }]);
  });

  test('reach diagnostics_channel; an error in onEvent does no harm', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const published: unknown[] = [];
    const listener = (event: unknown) => published.push(event);
    subscribe(EVENT_CHANNEL, listener);
    const heard = new Events(() => {
      throw new Error('mine');
    });
    const event = { type: 'master_back', endpoint: 'http://master', awayS: 1 } as const;
    heard.emit(event);
    unsubscribe(EVENT_CHANNEL, listener);
    expect(published).toEqual([event]);
    expect(warned).toHaveBeenCalledWith(expect.stringContaining('onEvent failed: Error: mine'), 'CloudparWarning');
    warned.mockRestore();
  });
});

describe('payloads', () => {
  const put: Link = { method: 'PUT', url: 'http://store/key', headers: { 'Content-Length': '3', 'x-amz-c': 'x' } };
  const get: Link = { method: 'GET', url: 'http://store/key', headers: {} };
  const bytes = new Uint8Array([1, 2, 3]);

  test('are put as the link says', async () => {
    const [connection, { sent }] = connect(
      () => new Response(null, { status: 503 }),
      () => new Response(null),
    );
    await connection.put(put, bytes);
    expect(sent.map(({ body }) => body)).toEqual([bytes, bytes]);
    expect(Object.fromEntries(sent[0]?.headers ?? [])).toEqual({ 'x-amz-c': 'x' });
  });

  test('of a relative link follow the endpoint, which calls say that this side understands', async () => {
    const [connection, { sent }] = connect(STARTED, () => new Response(null));
    await connection.call('start_tasks', ORDER);
    await connection.put({ ...put, url: '/blobs/key?signature=s' }, bytes);
    expect(sent[0]?.headers.get('cloudpar-links')).toBe('relative');
    expect(sent[1]?.url).toBe('http://master/blobs/key?signature=s');
  });

  test('of a relative link keep the path of an endpoint behind a proxy', async () => {
    const scripted = new ScriptedPlatform(() => new Response(null));
    const address = { endpoint: 'https://proxy/pools/one/', token: 'secret' };
    await new Connection(address, {}, new Events(), scripted).put({ ...put, url: '/blobs/key?signature=s' }, bytes);
    expect(scripted.sent[0]?.url).toBe('https://proxy/pools/one/blobs/key?signature=s');
  });

  test('that the store has already are accepted', async () => {
    const [connection, { sent }] = connect(
      () => new Response('<Code>ConditionalRequestConflict</Code>', { status: 409 }),
      () => new Response('<Code>PreconditionFailed</Code>', { status: 412 }),
    );
    await connection.put(put, bytes);
    expect(sent).toHaveLength(2);
  });

  test('that are refused say why', async () => {
    const [connection] = connect(() => new Response('expired', { status: 403 }));
    await expect(connection.put(put, bytes)).rejects.toBeInstanceOf(MasterUnreachable);
    await expect(connection.put(put, bytes)).rejects.toThrow(/upload .* HTTP status 403: expired/);
  });

  test('are read in ranges, also from a store that ignores them', async () => {
    const [connection, { sent }] = connect(
      () => new Response(new Uint8Array([5, 6]), { status: 206 }),
      () => new Response(new Uint8Array([4, 5, 6, 7]), { status: 200 }),
    );
    expect(await connection.get(get, 1, 3)).toEqual(new Uint8Array([5, 6]));
    expect(await connection.get(get, 1, 3)).toEqual(new Uint8Array([5, 6]));
    expect(sent[0]?.headers.get('range')).toBe('bytes=1-2');
  });

  test('that are cut short are read again', async () => {
    const [connection, { sent }] = connect(
      () => new Response(new Uint8Array([5]), { status: 206 }),
      () => new Response(new Uint8Array([5, 6]), { status: 206 }),
    );
    expect(await connection.get(get, 1, 3)).toHaveLength(2);
    expect(sent).toHaveLength(2);
  });

  test('of a link that has expired end with a RequestError', async () => {
    const [connection] = connect(STARTED, () => new Response('expired', { status: 403 }));
    await connection.call('start_tasks', ORDER);
    await expect(connection.get(get, 0, 1)).rejects.toBeInstanceOf(RequestError);
  });
});
