import { afterEach, describe, expect, vi } from 'vitest';
import { decode, decodeWithBreaks, encode } from '../../src/codec/messages.ts';
import { range } from '../../src/index.ts';
import type { Draft } from '../../src/messages.ts';
import { FakeMaster } from './fake-master.ts';
import { test as base } from './fixtures.ts';
import { failureOf, resultOf } from './statuses.ts';

const TASKS = 20_000;

/** There must be a turn of the event loop for this many results, when each reading of the clock takes 1 ms. */
const RESULTS_PER_TURN = 1000;

afterEach(() => {
  vi.restoreAllMocks();
});

/** A result whose value is its number below 100. */
function small(index: number): Draft<'TaskResult'> {
  return [index, 'ok', 1, new Uint8Array([index % 100]), null, null, null, null, null, null, null];
}

/** A master that has the results of all tasks in one answer. */
const test = base.extend<{ master: FakeMaster }>({
  master: ({ task: _ }, use) => {
    const master = new FakeMaster();
    master.page = TASKS;
    master.outcome = small;
    return use(master);
  },
});

/** Counts turns of the event loop; each reading of the clock takes 1 ms. */
function turns(atTurn: () => void = () => undefined): { counted: () => number; end: () => void } {
  let [clock, count, ended] = [performance.now(), 0, false];
  vi.spyOn(performance, 'now').mockImplementation(() => clock++);
  const turn = (): void => {
    count += 1;
    atTurn();
    if (!ended) {
      setImmediate(turn);
    }
  };
  setImmediate(turn);
  return {
    counted: () => count,
    end: () => {
      ended = true;
      vi.restoreAllMocks();
    },
  };
}

/** Counts the turns of the event loop between the first and the last result, all of which came in one answer. */
async function turnsWhileReading(values: AsyncIterable<unknown>): Promise<number> {
  const reader = values[Symbol.asyncIterator]();
  await reader.next();
  const { counted, end } = turns();
  let read = 1;
  for (let next = await reader.next(); !next.done; next = await reader.next()) {
    read += 1;
  }
  end();
  expect(read).toBe(TASKS);
  return counted();
}

describe('the event loop turns while a program reads results that have come', () => {
  test.for(['map', 'mapUnordered'] as const)('of %s', async (kind, { pool }) => {
    expect(await turnsWhileReading(pool[kind]('m:f', range(TASKS)))).toBeGreaterThan(TASKS / RESULTS_PER_TURN);
    expect(await turnsWhileReading(pool[kind]('m:f', range(TASKS)).settled())).toBeGreaterThan(
      TASKS / RESULTS_PER_TURN,
    );
  });

  test('of an attachment', async ({ pool }) => {
    const { packageId } = await pool.start('m:f', range(TASKS));
    const attached = await pool.attach(packageId);
    expect(await turnsWhileReading(attached)).toBeGreaterThan(TASKS / RESULTS_PER_TURN);
    expect(await turnsWhileReading(attached.settled())).toBeGreaterThan(TASKS / RESULTS_PER_TURN);
  });

  test('of an attachment, all at once', async ({ pool }) => {
    const started = await pool.start('m:f', range(TASKS));
    const { counted, end } = turns();
    expect(await started.results()).toHaveLength(TASKS);
    end();
    expect(counted()).toBeGreaterThan(TASKS / RESULTS_PER_TURN);
  });
});

describe('the event loop turns while the results of one answer', () => {
  const results = Array.from({ length: TASKS }, (_, index) => small(index));

  test('are decoded', async () => {
    const status = { package_id: 'p', state: 'running', cursor: 1, progress: { tasks: TASKS } } as const;
    const body = encode('AwaitTasksReply', { packages: [status, { ...status, results }], retry_after_s: 2.5 });
    const { counted, end } = turns();
    const reply = await decodeWithBreaks('AwaitTasksReply', body);
    end();
    expect(counted()).toBeGreaterThan(TASKS / RESULTS_PER_TURN);
    expect(reply).toEqual(decode('AwaitTasksReply', body));
  });

  test('are given to calls of submit', async ({ pool }) => {
    const values: unknown[] = [];
    const counts = new Set<number>();
    const { end } = turns(() => counts.add(values.length));
    const submitted = Array.from({ length: TASKS }, () => pool.submit('m:f').then((value) => values.push(value)));
    await Promise.all(submitted);
    end();
    expect(values).toHaveLength(TASKS);
    counts.delete(TASKS);
    expect(counts.size).toBeGreaterThan(2); // other work has run between the first result and the last
  });
});

test('closing the pool while the results of one answer are handed on ends the reader', async ({ pool }) => {
  const results = pool.map('m:f', range(TASKS));
  const reader = results[Symbol.asyncIterator]();
  const { end } = turns();
  await reader.next();
  await pool.close();
  end();
  const read = (async () => {
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      // Results that were passed on before are still read.
    }
  })();
  await expect(read).rejects.toThrow('the pool was closed while this call was running');
});

test('the warning of an unread map removes no result from a program that reads it later', async ({
  master,
  pool,
  events,
}) => {
  master.outcome = (index) => (index === 1 ? failureOf(index) : resultOf(index));
  const results = pool.map('m:f', range(3));
  await vi.waitFor(() => expect(events.map(({ type }) => type)).toContain('unread_error'), { timeout: 20_000 });
  const statuses: string[] = [];
  for await (const { status } of results.settled()) {
    statuses.push(status);
  }
  expect(statuses).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});
