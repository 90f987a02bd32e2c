import { expect, test } from 'vitest';
import { RequestAttempts, RetryPolicy } from '../../src/retry-policy.ts';

function master(met: boolean): RetryPolicy {
  const known = new RetryPolicy(300);
  known.met = met;
  return known;
}

function delays(attempts: RequestAttempts, count: number): (number | undefined)[] {
  return Array.from({ length: count }, () => attempts.failed(0));
}

test('delays double from 20 ms to 5 s', () => {
  expect(delays(new RequestAttempts(master(true), 30, 0, () => 0.5), 10)).toEqual([
    0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5, 5,
  ]);
});

test('delays are jittered by a quarter', () => {
  expect(delays(new RequestAttempts(master(true), 30, 0, () => 0), 2)).toEqual([0.015, 0.03]);
  expect(delays(new RequestAttempts(master(true), 30, 0, () => 1), 2)).toEqual([0.025, 0.05]);
});

test('the patience with a master that has answered counts from its first failure', () => {
  const attempts = new RequestAttempts(master(true), 30, 0, () => 0.5);
  expect(attempts.failed(1000)).toBeDefined();
  expect(attempts.failed(1299)).toBeDefined();
  expect(attempts.failed(1300)).toBeUndefined();
  expect(attempts.timeoutS(1000)).toBe(30);
});

test('a master that never answered is given up 8 s after the first try', () => {
  const attempts = new RequestAttempts(master(false), 30, 100, () => 0.5);
  expect(attempts.timeoutS(102)).toBe(6);
  expect(attempts.failed(107)).toBeDefined();
  expect(attempts.failed(108)).toBeUndefined();
  expect(attempts.timeoutS(200)).toBe(0.1);
});

test('a master that asks to wait is never given up', () => {
  const attempts = new RequestAttempts(master(true), 30, 0, () => 0);
  const delays = Array.from({ length: 12 }, () => attempts.paced(0, 0.5));
  expect(Math.min(...delays)).toBe(0.5);
  expect(delays.at(-1)).toBe(5);
  expect(attempts.failed(10_000)).toBeDefined(); // the time of its absence starts here
});

test('the pause is at least what the master requests', () => {
  expect(new RequestAttempts(master(true), 30, 0, () => 0.5).failed(0, 12)).toBe(12);
});
