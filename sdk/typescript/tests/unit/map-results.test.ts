import { describe, expect, vi } from 'vitest';
import { range } from '../../src/index.ts';
import { all, idOf, settled } from './fake-master.ts';
import { test } from './fixtures.ts';

const LARGE = new Uint8Array(300 * 1024);

/** Endless numbers, which record whether they were released. */
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
  test('whose signal was aborted before it starts sends nothing', async ({ master, pool }) => {
    const signal = AbortSignal.abort(new Error('before'));
    await expect(all(pool.map('m:f', range(20), { signal }))).rejects.toThrow('before');
    await expect(pool.start('m:f', range(20), { signal })).rejects.toThrow('before');
    await expect(pool.submit('m:f', [1], { signal })).rejects.toThrow('before');
    await settled();
    expect(master.calls.filter((call) => call !== 'hello')).toEqual([]);
  });

  test('that is aborted before its upload neither uploads nor starts', async ({ master, pool }) => {
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

  test('that is aborted in its upload ends that and does not start', async ({ master, pool }) => {
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

  test('that is aborted while its start is under way is cancelled once that was answered', async ({ master, pool }) => {
    const abort = new AbortController();
    master.before = (route) => {
      if (route === 'start_tasks') {
        abort.abort(new Error('no longer'));
      }
    };
    await expect(all(pool.map('m:f', range(3), { signal: abort.signal }))).rejects.toThrow('no longer');
    await vi.waitFor(() => expect(master.acknowledged).toEqual([idOf(0)]));
  });

  test('that is aborted while a refused start waits is not started by a repetition', async ({ master, pool }) => {
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
  test('when its signal is aborted, though it never pauses', async ({ pool }) => {
    const abort = new AbortController();
    const { values, state } = endless(() => setTimeout(() => abort.abort(new Error('enough')), 1));
    await expect(all(pool.map('m:f', values, { signal: abort.signal }))).rejects.toThrow('enough');
    await settled();
    const { given } = state;
    await settled();
    expect(state).toEqual({ given, released: true });
  });

  test('when the pool is closed, also of a source that waits for its next value', async ({ pool }) => {
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

  test('when a value cannot be sent, and when a loop over a stream is left', async ({ pool }) => {
    let released = 0;
    function* unsendable(): Generator<unknown> {
      try {
        yield new Map();
      } finally {
        released += 1;
      }
    }
    await expect(all(pool.map('m:f', unsendable()))).rejects.toThrow('is an instance of Map');
    expect(released).toBe(1);
    const { values, state } = endless();
    for await (const _ of pool.map('m:f', values, { buffersize: 4 })) {
      break;
    }
    await vi.waitFor(() => expect(state.released).toBe(true));
  });
});

describe('with buffersize', () => {
  test('an endless source is consumed as results are read', async ({ master, pool }) => {
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

  test('values that come one by one are not waited for until the buffer is full', async ({ master, pool }) => {
    async function* slow(): AsyncGenerator<number> {
      yield 1;
      await vi.waitFor(() => expect(master.packages.size).toBe(1), { timeout: 5000 });
      yield 2;
    }
    expect(await all(pool.map('m:f', slow(), { buffersize: 100 }))).toHaveLength(2);
    expect([...master.packages.values()].map(({ start }) => start.n)).toEqual([1, 1]);
  });

  test('an error of the source comes after the results before it', async ({ pool }) => {
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

  test('a range is streamed as well', async ({ master, pool }) => {
    expect(await all(pool.map('m:f', range(20), { buffersize: 5 }))).toHaveLength(20);
    expect(master.packages.size).toBeGreaterThan(3);
  });
});

test('a detached map continues when the pool is closed', async ({ master, pool }) => {
  const results = pool.map('m:f', range(3));
  expect(await results.detach()).toBe(idOf(0));
  await expect(all(results)).rejects.toThrow(`attach('${idOf(0)}')`);
  await pool.close();
  expect(master.acknowledged).toEqual([]);
});

test('a map reports its progress', async ({ pool, events }) => {
  const results = pool.map('m:f', range(3));
  expect(results.progress).toBeUndefined();
  const reader = results[Symbol.asyncIterator]();
  await reader.next();
  expect(results.progress).toMatchObject({ tasks: 3, done: 3 });
  expect(events).toContainEqual({ type: 'progress', packageId: idOf(0), progress: results.progress });
});
