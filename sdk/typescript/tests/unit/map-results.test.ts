import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { PoolEvent } from '../../src/events.ts';
import { type Pool, range, TaskRaised } from '../../src/index.ts';
import type { Draft } from '../../src/messages.ts';
import { FakeMaster, idOf, settled } from './fake-master.ts';

let master: FakeMaster;
let pool: Pool;
const events: PoolEvent[] = [];

beforeEach(() => {
  master = new FakeMaster();
  pool = master.pool({ onEvent: (event) => events.push(event) });
});

afterEach(async () => {
  await pool.close();
  events.length = 0;
});

const LARGE = new Uint8Array(300 * 1024);
const failed = (index: number): Draft<'TaskResult'> => {
  const trace = 'Traceback (most recent call last):\n  File "m.py", line 1\nmy.errors.Bad: no good\n';
  return [index, 'error', 1, null, null, 'Bad: no good', trace, null, null, null, null];
};

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) {
    found.push(value);
  }
  return found;
}

/** Numbers without end, which say whether they were released. */
function endless(began: () => void = () => undefined): {
  values: AsyncGenerator<number>;
  state: { given: number; released: boolean };
} {
  const state = { given: 0, released: false };
  async function* numbers(): AsyncGenerator<number> {
    try {
      began();
      for (;;) {
        yield state.given++;
      }
    } finally {
      state.released = true;
    }
  }
  return { values: numbers(), state };
}

describe('an aborted map', () => {
  test('whose signal was aborted before it begins sends nothing', async () => {
    const signal = AbortSignal.abort(new Error('before'));
    await expect(all(pool.map('m:f', range(20), { signal }))).rejects.toThrow('before');
    await expect(pool.start('m:f', range(20), { signal })).rejects.toThrow('before');
    await settled();
    expect(master.calls.filter((call) => call !== 'hello')).toEqual([]);
  });

  test('that is aborted before its upload neither uploads nor starts', async () => {
    const abort = new AbortController();
    master.before = (route) => {
      if (route === 'prepare_uploads') {
        abort.abort(new Error('no longer'));
      }
    };
    await expect(all(pool.map('m:f', [LARGE], { signal: abort.signal }))).rejects.toThrow('no longer');
    await settled();
    expect([master.count('/put'), master.count('start_tasks')]).toEqual([0, 0]);
  });

  test('that is aborted in its upload ends that and does not start', async () => {
    const abort = new AbortController();
    let ended: unknown;
    master.before = async (route, init) => {
      if (route === '/put') {
        abort.abort(new Error('no longer'));
        ended = init.signal.reason;
      }
    };
    await expect(all(pool.map('m:f', [LARGE], { signal: abort.signal }))).rejects.toThrow('no longer');
    await settled();
    expect([ended, master.count('start_tasks')]).toEqual([new Error('no longer'), 0]);
  });

  test('that is aborted while its start is under way is cancelled once that was answered', async () => {
    const abort = new AbortController();
    master.before = (route) => {
      if (route === 'start_tasks') {
        abort.abort(new Error('no longer'));
      }
    };
    await expect(all(pool.map('m:f', range(3), { signal: abort.signal }))).rejects.toThrow('no longer');
    await vi.waitFor(() => expect(master.acknowledged).toEqual([idOf(0)]));
  });

  test('that is aborted while a refused start waits is not started by a repetition', async () => {
    const abort = new AbortController();
    master.before = (route) => {
      if (route === 'start_tasks') {
        setImmediate(() => abort.abort(new Error('no longer')));
        throw new TypeError('fetch failed');
      }
    };
    await expect(all(pool.map('m:f', range(3), { signal: abort.signal }))).rejects.toThrow('no longer');
    await settled();
    expect(master.count('start_tasks')).toBe(1);
  });
});

describe('the source of a map is released', () => {
  test('when its signal is aborted, though it never pauses', async () => {
    const abort = new AbortController();
    const { values, state } = endless(() => setTimeout(() => abort.abort(new Error('enough')), 1));
    await expect(all(pool.map('m:f', values, { signal: abort.signal }))).rejects.toThrow('enough');
    await settled();
    const { given } = state;
    await settled();
    expect(state).toEqual({ given, released: true });
  });

  test('when the pool is closed, also of a source that waits for its next value', async () => {
    let returned = 0;
    const values = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<never>(() => undefined),
        return: async () => {
          returned += 1;
          return { done: true as const, value: undefined };
        },
      }),
    };
    const reading = all(pool.map('m:f', values));
    reading.catch(() => undefined);
    await settled();
    await pool.close();
    await expect(reading).rejects.toThrow('the pool was closed');
    expect(returned).toBe(1);
  });

  test('when a value cannot be sent, and when a loop over a stream is left', async () => {
    let released = 0;
    function* unsendable(): Generator<unknown> {
      try {
        yield new Map();
      } finally {
        released += 1;
      }
    }
    await expect(all(pool.map('m:f', unsendable()))).rejects.toThrow('is a Map');
    expect(released).toBe(1);
    const { values, state } = endless();
    for await (const _ of pool.map('m:f', values, { buffersize: 4 })) {
      break;
    }
    await vi.waitFor(() => expect(state.released).toBe(true));
  });
});

describe('with buffersize', () => {
  test('an endless source is consumed as results are read', async () => {
    master.outcome = (index) => [index, 'ok', 1, new Uint8Array([index]), null, null, null, null, null, null, null];
    const { values, state } = endless();
    const results = pool.map<number>('m:f', values, { buffersize: 8 });
    let read = 0;
    let most = 0;
    for await (const each of results.settled()) {
      expect(each.index).toBe(read);
      read += 1;
      most = Math.max(most, state.given - read);
      if (read === 100) {
        break;
      }
    }
    expect(most).toBeLessThanOrEqual(8);
    expect([...master.packages.values()].every(({ start }) => start.n <= 8)).toBe(true);
    expect(results.progress?.tasks).toBe([...master.packages.values()].reduce((sum, { start }) => sum + start.n, 0));
    await expect(results.detach()).rejects.toThrow('can be detached');
  });

  test('values that come one by one are not waited for until the buffer is full', async () => {
    async function* slow(): AsyncGenerator<number> {
      yield 1;
      await vi.waitFor(() => expect(master.packages.size).toBe(1), { timeout: 5000 });
      yield 2;
    }
    expect(await all(pool.map('m:f', slow(), { buffersize: 100 }))).toHaveLength(2);
    expect([...master.packages.values()].map(({ start }) => start.n)).toEqual([1, 1]);
  });

  test('an error of the source comes after the results before it', async () => {
    async function* broken(): AsyncGenerator<number> {
      yield* [1, 2];
      throw new Error('the source broke');
    }
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const value of pool.map('m:f', broken(), { buffersize: 2 })) {
        seen.push(value);
      }
    })();
    await expect(reading).rejects.toThrow('the source broke');
    expect(seen).toHaveLength(2);
  });

  test('a range is streamed as well', async () => {
    expect(await all(pool.map('m:f', range(20), { buffersize: 5 }))).toHaveLength(20);
    expect(master.packages.size).toBeGreaterThan(3);
  });
});

describe('results that nobody reads yet', () => {
  const MEGABYTE = 1 << 20;

  test('are downloaded up to a bound, and the others when there is room', async () => {
    master.outcome = (index) => [index, 'ok', 1, null, [`r${index}`, MEGABYTE, 0], null, null, null, null, null, null];
    master.page = 50;
    const results = pool.mapUnordered('m:f', range(300));
    const reader = results.settled();
    await reader.next();
    await vi.waitFor(() => expect(master.downloads.length).toBeGreaterThan(60));
    await settled(500);
    expect(master.downloads.length).toBeLessThan(70);
    const asked = master.count('await_tasks');
    await settled(500);
    expect(master.count('await_tasks')).toBe(asked);
    let read = 1;
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      read += 1;
    }
    expect([read, master.downloads.length]).toEqual([300, 300]);
  });

  test('that lie in the answers stop the questions, and the reader starts them again', async () => {
    master.outcome = (index) => [
      index,
      'ok',
      1,
      new Uint8Array(MEGABYTE).fill(0xc0),
      null,
      null,
      null,
      null,
      null,
      null,
      null,
    ];
    master.page = 4;
    const results = pool.map('m:f', range(120));
    const reader = results.settled();
    await reader.next();
    await vi.waitFor(() => expect(master.count('await_tasks')).toBeGreaterThan(15), { timeout: 20_000 });
    await settled(500);
    expect(master.count('await_tasks')).toBeLessThan(20);
    expect(await all(reader)).toHaveLength(119);
  });

  test('do not keep the one that the reader waits for from coming', async () => {
    // The results come in the reverse order: the first one comes last, when the others fill the room.
    master.outcome = (index) => [
      99 - index,
      'ok',
      1,
      null,
      [`r${index}`, MEGABYTE, 0],
      null,
      null,
      null,
      null,
      null,
      null,
    ];
    master.page = 10;
    const settled = await all(pool.map('m:f', range(100)).settled());
    expect(settled.map(({ index }) => index)).toEqual([...range(100)]);
  });

  test('of another map do not hold up one that is read', async () => {
    master.outcome = (index) => [index, 'ok', 1, null, [`r${index}`, MEGABYTE, 0], null, null, null, null, null, null];
    const unread = pool.map('m:f', range(100));
    await vi.waitFor(() => expect(master.downloads.length).toBeGreaterThan(60));
    expect(await all(pool.map('m:f', range(100)))).toHaveLength(100);
    await unread.cancel();
  });
});

describe('errors', () => {
  test('of a task tell its number, its package, the remote class and the code', async () => {
    master.outcome = (index) =>
      index === 1 ? failed(index) : [index, 'ok', 1, null, null, null, null, null, null, null, null];
    const [, second] = await all(pool.map('m:f', range(2)).settled());
    const reason = second?.status === 'rejected' ? second.reason : undefined;
    expect(reason).toBeInstanceOf(TaskRaised);
    expect(reason).toMatchObject({ taskIndex: 1, packageId: idOf(0), remoteClass: 'my.errors.Bad', code: 'error' });
  });

  test('show where the program made the call', async () => {
    master.outcome = failed;
    const mapped = await all(pool.map('m:f', [1])).catch((error: Error) => error.stack);
    expect(mapped).toMatch(/^TaskRaised: Bad: no good\n {4}at .*map-results\.test\.ts/);
    async function theCaller(): Promise<unknown> {
      return pool.submit('m:f', [1]);
    }
    const submitted = await theCaller().catch((error: Error) => error.stack);
    expect(submitted).toMatch(/^TaskRaised: Bad: no good\n {4}at theCaller /);
  });

  test('of a map that nobody reads are told', async () => {
    master.outcome = failed;
    pool.map('m:f', range(2));
    await vi.waitFor(() => expect(events.map(({ type }) => type)).toContain('unread_error'), { timeout: 5000 });
    expect(events.find(({ type }) => type === 'unread_error')).toMatchObject({
      packageId: idOf(0),
      error: { message: 'Bad: no good', taskIndex: 0 },
    });
  });

  test('of a map that nobody reads are told at the latest when the pool is closed', async () => {
    master.before = (route) => {
      if (route === 'start_tasks') {
        throw new TypeError('fetch failed');
      }
    };
    const own = master.pool({ patienceS: 0, onEvent: (event) => events.push(event) });
    const results = own.map('m:f', range(2));
    await results.packageId.catch(() => undefined);
    await own.close();
    expect(events.find(({ type }) => type === 'unread_error')).toMatchObject({ error: { name: 'MasterUnreachable' } });
  });

  test('of a map that is read are not told twice', async () => {
    master.outcome = failed;
    await expect(all(pool.map('m:f', range(2)))).rejects.toThrow('no good');
    await pool.close();
    expect(events.filter(({ type }) => type === 'unread_error')).toEqual([]);
  });

  test('are warnings of the process without onEvent', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    master.outcome = failed;
    master.pool().map('m:f', range(2));
    await vi.waitFor(() => expect(warned).toHaveBeenCalled(), { timeout: 5000 });
    expect(warned).toHaveBeenCalledWith(expect.stringContaining('Bad: no good'), 'CloudparWarning');
    warned.mockRestore();
  });
});

test('a detached map goes on when the pool is closed', async () => {
  const results = pool.map('m:f', range(3));
  expect(await results.detach()).toBe(idOf(0));
  await expect(all(results)).rejects.toThrow(`attach('${idOf(0)}')`);
  await pool.close();
  expect(master.acknowledged).toEqual([]);
});

test('a map tells its progress', async () => {
  const results = pool.map('m:f', range(3));
  expect(results.progress).toBeUndefined();
  const reader = results[Symbol.asyncIterator]();
  await reader.next();
  expect(results.progress).toMatchObject({ tasks: 3, done: 3 });
  expect(events).toContainEqual({ type: 'progress', packageId: idOf(0), progress: results.progress });
});
