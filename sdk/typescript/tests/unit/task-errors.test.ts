import { describe, expect, vi } from 'vitest';
import { range, type Settled, TaskRaised } from '../../src/index.ts';
import { all, idOf } from './fake-master.ts';
import { test } from './fixtures.ts';
import { failureOf, resultOf } from './statuses.ts';

describe('errors', () => {
  test('of a task have its number, its package, the remote class and the code', async ({ master, pool }) => {
    master.outcome = (index) => (index === 1 ? failureOf(index) : resultOf(index));
    const [, second] = await all(pool.map('m:f', range(2)).settled());
    const reason = second?.status === 'rejected' ? second.reason : undefined;
    expect(reason).toBeInstanceOf(TaskRaised);
    expect(reason).toMatchObject({ taskIndex: 1, packageId: idOf(0), remoteClass: 'my.errors.Bad', code: 'error' });
  });

  test('show what the task was called with, as the executor describes it', async ({ master, pool }) => {
    master.outcome = (index) => failureOf(index, "value Decimal('1.5')");
    const [first] = await all(pool.mapUnordered('m:f', new Set([1])).settled());
    expect(first).toMatchObject({
      reason: { taskInput: "value Decimal('1.5')", stack: expect.stringContaining("\ntask 0, value Decimal('1.5')\n") },
    });
    const id = (await pool.start('m:f', range(1)).then(({ packageId }) => packageId)) as string;
    const [again] = await all((await pool.attach(id)).settled());
    expect(again).toMatchObject({
      reason: { stack: expect.stringContaining("\ntask 0 of 1, value Decimal('1.5')\n") },
    });
  });

  test('of an executor that is gone, or of an earlier release, show what the program still has', async ({
    master,
    pool,
  }) => {
    master.outcome = (index) => [index, 'crashed', 1, null, null, 'it ended', null, null, null, null, null];
    const values = [[5], { __proto__: null, id: 7312, text: 'x'.repeat(90) }];
    const found = await all(pool.map('m:f', values).settled());
    expect(found).toMatchObject([
      { reason: { taskInput: 'value [5]' } },
      { reason: { taskInput: `value { id: 7312, text: '${'x'.repeat(40)}'... (90 long) }` } },
    ]);
    expect(await all(pool.map('m:f', range(4, 5), { buffersize: 1 }).settled())).toMatchObject([
      { reason: { message: 'it ended', taskInput: 'value 4' } },
    ]);
    const submitted = await pool.submit('m:f', [5, 'a'], { kwargs: { b: 0 } }).catch((error: unknown) => error);
    expect(submitted).toMatchObject({ taskInput: "arguments (5, 'a', b=0)" });
  });

  test('of a package that failed are those of each task without a result, and the others are read', async ({
    master,
    pool,
  }) => {
    master.page = 1;
    master.lost = (index) => index === 1;
    for (const map of [
      pool.map('m:f', range(3)),
      pool.mapUnordered('m:f', range(3)),
      await pool.start('m:f', range(3)),
    ]) {
      const found = (await all<Settled<unknown>>(map.settled())).sort((one, other) => one.index - other.index);
      expect(found.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(found[1]).toMatchObject({ reason: { name: 'PackageFailed', reason: 'quota', taskIndex: 1 } });
      expect((found[1] as PromiseRejectedResult).reason.stack).not.toContain('\ntask 1');
    }
  });

  test('show where the program made the call', async ({ master, pool }) => {
    master.outcome = (index) => failureOf(index);
    const mapped = await all(pool.map('m:f', [1])).catch((error: Error) => error.stack);
    expect(mapped).toMatch(/^TaskRaised: Bad: no good\ntask 0 of 1, value 1\n {4}at .*task-errors\.test\.ts/);
    async function theCaller(): Promise<unknown> {
      return pool.submit('m:f', [1]);
    }
    const submitted = await theCaller().catch((error: Error) => error.stack);
    expect(submitted).toMatch(/^TaskRaised: Bad: no good\ntask 0, arguments \(1\)\n {4}at theCaller /);
  });

  test('of a map that is not read are reported', async ({ master, pool, events }) => {
    master.outcome = (index) => failureOf(index);
    pool.map('m:f', range(2));
    await vi.waitFor(() => expect(events.map(({ type }) => type)).toContain('unread_error'), { timeout: 5000 });
    expect(events.find(({ type }) => type === 'unread_error')).toMatchObject({
      packageId: idOf(0),
      error: { message: 'Bad: no good', taskIndex: 0 },
    });
  });

  test('of a map that is not read are reported at the latest when the pool is closed', async ({ master, events }) => {
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

  test('of a map that is read are not reported twice', async ({ master, pool, events }) => {
    master.outcome = (index) => failureOf(index);
    await expect(all(pool.map('m:f', range(2)))).rejects.toThrow('no good');
    await pool.close();
    expect(events.filter(({ type }) => type === 'unread_error')).toEqual([]);
  });

  test('are warnings of the process without onEvent', async ({ master }) => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    master.outcome = (index) => failureOf(index);
    master.pool().map('m:f', range(2));
    await vi.waitFor(() => expect(warned).toHaveBeenCalled(), { timeout: 5000 });
    expect(warned).toHaveBeenCalledWith(expect.stringContaining('Bad: no good'), 'CloudparWarning');
    warned.mockRestore();
  });
});
