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

function sleep(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, seconds * 1000);
    signal.addEventListener('abort', abort, { once: true });
  });
}
