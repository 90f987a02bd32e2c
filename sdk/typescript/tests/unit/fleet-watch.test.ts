import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Events, type PoolEvent } from '../../src/events.ts';
import { FleetWatch } from '../../src/fleet-watch.ts';
import { Package } from '../../src/package.ts';
import { progressOf } from './statuses.ts';

let reported: PoolEvent[];
let waiting: Package;
let underWay: Package[];
let watch: FleetWatch;

beforeEach(() => {
  vi.useFakeTimers();
  reported = [];
  waiting = new Package('p', 3, 0);
  underWay = [waiting];
  const now = () => (Date.now() - began) / 1000;
  const began = Date.now();
  watch = new FleetWatch(new Events((event) => reported.push(event)), () => underWay, now);
  watch.begin();
});

afterEach(() => {
  vi.useRealTimers();
});

test('a package without a result is reported after 5 s, and then after growing times', () => {
  vi.advanceTimersByTime(4900);
  expect(reported).toEqual([]);
  vi.advanceTimersByTime(100);
  const unknown = { running: null, starting: null, message: null };
  expect(reported).toEqual([{ type: 'waiting_for_workers', packageIds: ['p'], waitedS: 5, ...unknown }]);
  vi.advanceTimersByTime(95_000);
  expect(reported.map((event) => event.type === 'waiting_for_workers' && event.waitedS)).toEqual([5, 15, 35, 75]);
});

test('a package with a result, or with a worker, is not reported', () => {
  waiting.progress = progressOf({ tasks: 3, done: 1 });
  vi.advanceTimersByTime(20_000);
  waiting.progress = progressOf({ tasks: 3, executors: 1 });
  vi.advanceTimersByTime(20_000);
  expect(reported).toEqual([]);
});

test('the report has the fleet status of the master; a reason why no worker can start is reported at once', () => {
  watch.answered({ running: 1, starting: 2, message: 'no capacity' });
  watch.answered({ running: 1, starting: 3, message: 'no capacity' });
  expect(reported).toMatchObject([{ waitedS: 0, running: 1, starting: 2, message: 'no capacity' }]);
  vi.advanceTimersByTime(5000);
  expect(reported.at(-1)).toMatchObject({ waitedS: 5, starting: 3 });
});

test('nothing is reported once the pool is closed, and no timer runs without packages', () => {
  watch.end();
  vi.advanceTimersByTime(20_000);
  expect(reported).toEqual([]);
  underWay = [];
  watch.begin();
  vi.advanceTimersByTime(20_000);
  expect(vi.getTimerCount()).toBe(0);
});
