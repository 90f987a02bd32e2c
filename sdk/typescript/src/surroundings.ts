import { setTimeout } from 'node:timers/promises';
import type { Fetch } from './http.ts';

/** A client's clock and random numbers, which tests replace. Times are in seconds. */
export interface Surroundings {
  readonly fetch: Fetch;
  /** A clock that never goes back. */
  now(): number;
  /** Resolves after some time, or rejects with the signal's reason. */
  sleep(seconds: number, signal: AbortSignal): Promise<void>;
  /** Between 0 and 1. */
  random(): number;
}

export const SURROUNDINGS: Surroundings = {
  fetch: (url, init) => fetch(url, init as RequestInit),
  now: () => performance.now() / 1000,
  sleep,
  random: Math.random,
};

/** Unlike Node's, it rejects with the signal's own reason. */
async function sleep(seconds: number, signal: AbortSignal): Promise<void> {
  await setTimeout(seconds * 1000, undefined, { signal }).catch(() => signal.throwIfAborted());
}
