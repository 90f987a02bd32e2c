import { describe, expect, vi } from 'vitest';
import { range } from '../../src/index.ts';
import type { Draft } from '../../src/messages.ts';
import { ResultStore } from '../../src/result-store.ts';
import { all, settled } from './fake-master.ts';
import { test } from './fixtures.ts';
import { resultOf } from './statuses.ts';

describe('results that are not read yet', () => {
  const MEGABYTE = 1 << 20;
  const DATA = new Uint8Array(MEGABYTE).fill(0xc0);

  /** A result inside the answer itself. */
  function inline(index: number): Draft<'TaskResult'> {
    const result = resultOf(index);
    result[3] = DATA;
    return result;
  }

  test('are downloaded up to a bound, and the others when there is room', async ({ master, pool }) => {
    master.outcome = (index) => resultOf(index, [`r${index}`, MEGABYTE, 0]);
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

  test('that lie in the answers stop the polls, and the reader starts them again', async ({ master, pool }) => {
    master.outcome = (index) => inline(index);
    master.page = 4;
    const results = pool.map('m:f', range(120));
    const reader = results.settled();
    await reader.next();
    await vi.waitFor(() => expect(master.count('await_tasks')).toBeGreaterThan(15), { timeout: 20_000 });
    await settled(500);
    expect(master.count('await_tasks')).toBeLessThan(20);
    expect(await all(reader)).toHaveLength(119);
  });

  test('do not keep the one that the reader waits for from coming', async ({ master, pool }) => {
    // The results come in the reverse order: the first one comes last, when the others fill the buffer.
    master.outcome = (index) => resultOf(99 - index, [`r${index}`, MEGABYTE, 0]);
    master.page = 10;
    const settled = await all(pool.map('m:f', range(100)).settled());
    expect(settled.map(({ index }) => index)).toEqual([...range(100)]);
  });

  test('of small tasks behind a slow one are bounded, and come again once that has ended', async ({ master, pool }) => {
    // All other tasks have ended before the first one.
    const [tasks, page] = [180, 10];
    master.outcome = (index) => inline((index + 1) % tasks);
    master.page = page;
    const add = ResultStore.prototype.add;
    let most = 0;
    const spy = vi.spyOn(ResultStore.prototype, 'add').mockImplementation(function (this: ResultStore, ...args) {
      add.apply(this, args);
      most = Math.max(most, this.bytes);
    });
    const found = await all(pool.map('m:f', range(tasks)).settled());
    spy.mockRestore();
    expect(found.map(({ index }) => index)).toEqual([...range(tasks)]);
    expect(most).toBeLessThan((64 + 16 + page + 1) * MEGABYTE);
    expect(master.count('await_tasks')).toBeGreaterThan(tasks / page);
  }, 60_000);

  test('of another map do not hold up one that is read', async ({ master, pool }) => {
    master.outcome = (index) => resultOf(index, [`r${index}`, MEGABYTE, 0]);
    const unread = pool.map('m:f', range(100));
    await vi.waitFor(() => expect(master.downloads.length).toBeGreaterThan(60));
    expect(await all(pool.map('m:f', range(100)))).toHaveLength(100);
    await unread.cancel();
  });
});
