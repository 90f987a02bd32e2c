import { expect, test } from 'vitest';
import { CloudparError, PackageFailed, PythonMismatch } from '../../src/errors.ts';
import { Package } from '../../src/package.ts';
import { progressOf, resultOf, statusOf } from './statuses.ts';

test('each result is handed on once, and the last one ends the package', () => {
  const pack = new Package('p', 3, 0);
  const first = pack.take(statusOf('p', { cursor: 4, results: [resultOf(2), resultOf(0)] }));
  expect([...first.results].map(({ index }) => index)).toEqual([2, 0]);
  expect([pack.cursor, pack.phase]).toEqual([4, 'running']);
  const second = pack.take(statusOf('p', { cursor: 5, results: [resultOf(0), resultOf(1), resultOf(1)] }));
  expect([...second.results].map(({ index }) => index)).toEqual([1]);
  expect([second.page, pack.phase, pack.failure]).toEqual([4, 'ended', undefined]);
  expect([...pack.take(statusOf('p', { results: [resultOf(1)] })).results]).toEqual([]);
});

test('a package ends only when its results in blobs have been downloaded', () => {
  const pack = new Package('p', 2, 0);
  const news = pack.take(statusOf('p', { state: 'completed', results: [resultOf(0), resultOf(1, ['key', 9, 4])] }));
  expect(news.fetches).toMatchObject([{ key: 'key', size: 9, offset: 4, result: { index: 1 } }]);
  expect(pack.phase).toBe('running');
  pack.fetched(1);
  expect([pack.phase, pack.failure]).toEqual(['ended', undefined]);
});

test('tasks that were cancelled one by one end like the others', () => {
  const pack = new Package('p', 4, 0);
  const news = pack.take(statusOf('p', { state: 'error', results: [resultOf(1)], cancelled: [[0, 3]] }));
  expect([...news.results].map(({ index, outcome }) => [index, outcome])).toEqual([
    [1, 'ok'],
    [0, 'cancelled'],
    [2, 'cancelled'],
  ]);
  expect([...pack.take(statusOf('p', { state: 'error', cancelled: [[0, 4]] })).results]).toHaveLength(0);
});

test('a package that failed says why, once all of its results are there', () => {
  const failed = { state: 'failed', reason: 'quota', message: 'ask the operator' } as const;
  const pack = new Package('p', 3, 0);
  pack.take(statusOf('p', { ...failed, more: true, results: [resultOf(0)] }));
  expect(pack.phase).toBe('running');
  pack.take(statusOf('p', { ...failed, results: [resultOf(1)] }));
  expect(pack.phase).toBe('ended');
  expect(pack.failure).toBeInstanceOf(PackageFailed);
  expect(pack.failure).toMatchObject({ message: 'ask the operator', reason: 'quota' });
});

test('the class of the error depends on the reason of the failure', () => {
  const pack = new Package('p', 1, 0);
  pack.take(statusOf('p', { state: 'failed', reason: 'python' }));
  expect(pack.failure).toBeInstanceOf(PythonMismatch);
  expect(pack.failure?.message).toContain('python');
});

// After a restore of the master's data, results come at positions that this client has read already.
test('an ended package with results before the cursor is read again from the start, once', () => {
  const progress = progressOf({ tasks: 3, done: 3 });
  const pack = new Package('p', 3, 0);
  pack.take(statusOf('p', { cursor: 80, results: [resultOf(0)] }));
  pack.take(statusOf('p', { state: 'completed', cursor: 80, progress }));
  expect([pack.phase, pack.cursor, pack.more]).toEqual(['running', 0, true]);
  const news = pack.take(
    statusOf('p', { state: 'completed', cursor: 50, progress, results: [resultOf(0), resultOf(2)] }),
  );
  expect([...news.results].map(({ index }) => index)).toEqual([2]);
  expect(pack.failure?.message).toContain('1 of its results never came');
});

test('a package whose master never sends some results fails', () => {
  const pack = new Package('p', 2, 0);
  pack.take(statusOf('p', { state: 'completed', results: [resultOf(0)] }));
  expect(pack.failure?.message).toContain('1 of its results never came');
});

test('a package that is lost stays lost', () => {
  const pack = new Package('p', 1, 0);
  const error = new CloudparError('gone');
  pack.lost(error);
  pack.lost(new CloudparError('again'));
  expect([pack.phase, pack.failure]).toEqual(['ended', error]);
});

test('a million tasks that were cancelled together end together', () => {
  const tasks = 1_000_000;
  const pack = new Package('p', tasks, 0);
  const news = pack.take(statusOf('p', { state: 'cancelled', cancelled: [[0, tasks]] }));
  let cancelled = 0;
  for (const { outcome } of news.results) {
    cancelled += outcome === 'cancelled' ? 1 : 0;
  }
  expect(cancelled).toBe(tasks);
});
