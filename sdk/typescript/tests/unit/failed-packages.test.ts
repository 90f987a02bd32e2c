import { describe, expect, vi } from 'vitest';
import { range, type Settled } from '../../src/index.ts';
import type { Draft } from '../../src/messages.ts';
import { all, settled } from './fake-master.ts';
import { test } from './fixtures.ts';
import { resultOf } from './statuses.ts';

const MEGABYTE = 1 << 20;
/** More results of 1 MB than may wait for their reader. */
const TASKS = 120;
const LOST = [0, 60];

/** A value of 1 MB in MessagePack. */
const DATA = new Uint8Array(MEGABYTE);
DATA[0] = 0xc6;
new DataView(DATA.buffer).setUint32(1, MEGABYTE - 5);

function inAnswers(index: number): Draft<'TaskResult'> {
  const result = resultOf(index);
  result[3] = DATA;
  return result;
}

function inBlobs(index: number): Draft<'TaskResult'> {
  return resultOf(index, [`r${index}`, MEGABYTE, 0]);
}

test.beforeEach(({ master }) => {
  master.page = 10;
  master.lost = (index) => LOST.includes(index);
});

/** Returns the tasks, out of all in their order, whose error is that the package failed. */
function lostOf(found: readonly Settled<unknown>[]): number[] {
  expect(found.map(({ index }) => index)).toEqual([...range(TASKS)]);
  return found.filter(({ status }) => status === 'rejected').map(({ index }) => index);
}

describe.each([
  ['in the answers', inAnswers],
  ['in blobs', inBlobs],
])('more results than may wait for their reader, %s, of a package that has failed', (_, outcome) => {
  test.beforeEach(({ master }) => {
    master.outcome = outcome;
  });

  test('are read as a map behind a task without a result', async ({ pool }) => {
    const results = pool.map('m:f', range(TASKS));
    expect(lostOf(await all(results.settled()))).toEqual(LOST);
  });

  test('are read as they come', async ({ pool }) => {
    const found = await all(pool.mapUnordered('m:f', range(TASKS)).settled());
    expect(lostOf(found.sort((one, other) => one.index - other.index))).toEqual(LOST);
  });

  test('are read as an attachment, again and again', async ({ pool }) => {
    const { packageId } = await pool.start('m:f', range(TASKS));
    const attached = await pool.attach(packageId);
    expect(lostOf(await all(attached.settled()))).toEqual(LOST);
    expect(lostOf(await all(attached.settled()))).toEqual(LOST);
    await expect(attached.results()).rejects.toMatchObject({ name: 'PackageFailed', taskIndex: 0 });
  });

  test('are read as an attachment that waited for the package', async ({ master, pool }) => {
    const { packageId } = await pool.start('m:f', range(TASKS));
    master.change(packageId, 'running');
    const reader = (await pool.attach(packageId)).settled();
    const first = reader.next();
    await vi.waitFor(() => expect(master.count('await_tasks')).toBeGreaterThan(8), { timeout: 20_000 });
    await settled(500); // all results that fit have come
    master.change(packageId, 'failed');
    const { value } = await first;
    expect(value).toMatchObject({ index: 0, status: 'rejected', reason: { name: 'PackageFailed' } });
    expect(lostOf([value as Settled<unknown>, ...(await all(reader))])).toEqual(LOST);
  });
});

test('a failed map that is not read gives a warning, also when its results have no room', async ({
  master,
  pool,
  events,
}) => {
  master.outcome = inBlobs;
  await pool.map('m:f', range(TASKS)).packageId;
  await vi.waitFor(() => expect(events.map(({ type }) => type)).toContain('unread_error'), { timeout: 20_000 });
});
