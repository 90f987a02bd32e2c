import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Events, type PoolEvent } from '../../src/events.ts';
import { FleetWatch } from '../../src/fleet-watch.ts';
import { Package } from '../../src/package.ts';
import { progressOf } from './statuses.ts';

let told: PoolEvent[];
let waiting: Package;
let underWay: Package[];
let watch: FleetWatch;

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  waiting = new Package('p', 3, 0);
  underWay = [waiting];
  const now = () => (Date.now() - began) / 1000;
  const began = Date.now();
  watch = new FleetWatch(new Events((event) => told.push(event)), () => underWay, now);
  watch.begin();
});

afterEach(() => {
  vi.useRealTimers();
});

test('a package without a result is told after 5 s, and then after ever longer times', () => {
  vi.advanceTimersByTime(4900);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(100);
  const unknown = { running: null, starting: null, message: null };
  expect(told).toEqual([{ type: 'waiting_for_workers', packageIds: ['p'], waitedS: 5, ...unknown }]);
  vi.advanceTimersByTime(95_000);
  expect(told.map((event) => event.type === 'waiting_for_workers' && event.waitedS)).toEqual([5, 15, 35, 75]);
});

test('a package with a result, or with a worker, is not told', () => {
  waiting.progress = progressOf({ tasks: 3, done: 1 });
  vi.advanceTimersByTime(20_000);
  waiting.progress = progressOf({ tasks: 3, executors: 1 });
  vi.advanceTimersByTime(20_000);
  expect(told).toEqual([]);
});

test('what the master says of the fleet is told, why no worker can start at once', () => {
  watch.answered({ running: 1, starting: 2, message: 'no capacity' });
  watch.answered({ running: 1, starting: 3, message: 'no capacity' });
  expect(told).toMatchObject([{ waitedS: 0, running: 1, starting: 2, message: 'no capacity' }]);
  vi.advanceTimersByTime(5000);
  expect(told.at(-1)).toMatchObject({ waitedS: 5, starting: 3 });
});

test('nothing is told once the pool is closed, and no timer goes on without packages', () => {
  watch.end();
  vi.advanceTimersByTime(20_000);
  expect(told).toEqual([]);
  underWay = [];
  watch.begin();
  vi.advanceTimersByTime(20_000);
  expect(vi.getTimerCount()).toBe(0);
});
