import { setTimeout } from 'node:timers/promises';
import type { Fetch } from './http.ts';

/** The functions of the runtime that a client uses. Tests replace them. Times are in seconds. */
export interface Platform {
  readonly fetch: Fetch;
  /** A clock that never goes back. */
  now(): number;
  /** Resolves after some time, or rejects with the signal's reason. */
  sleep(seconds: number, signal: AbortSignal): Promise<void>;
  /** Returns a random number from 0 to 1. */
  random(): number;
}

export const PLATFORM: Platform = {
  fetch: (url, init) => fetch(url, init as RequestInit),
  now: () => performance.now() / 1000,
  sleep,
  random: Math.random,
};

/** Waits like Node's function, but rejects with the signal's own reason. */
async function sleep(seconds: number, signal: AbortSignal): Promise<void> {
  await setTimeout(seconds * 1000, undefined, { signal }).catch(() => signal.throwIfAborted());
}
