import { setMaxListeners } from 'node:events';

/** Calls `abort` once the signal is aborted, unless `over` is aborted first. An abort before this call is ignored. */
export function onAbort(signal: AbortSignal, abort: () => void, over?: AbortSignal): void {
  setMaxListeners(0, signal); // a program may give one signal to many calls, and Node would warn of a leak
  signal.addEventListener('abort', abort, { once: true, ...(over && { signal: over }) });
}

/**
 * Returns a signal that is aborted as soon as one of several signals is aborted.
 *
 * `release` stops listening to these signals. Without it, a signal that lives as long as the program would keep every
 * call in memory.
 */
export function anyOf(...signals: (AbortSignal | undefined)[]): { signal: AbortSignal; release: () => void } {
  const [any, over] = [new AbortController(), new AbortController()];
  for (const signal of signals) {
    if (signal?.aborted) {
      any.abort(signal.reason);
    } else if (signal !== undefined) {
      onAbort(signal, () => any.abort(signal.reason), over.signal);
    }
  }
  setMaxListeners(0, any.signal);
  return { signal: any.signal, release: () => over.abort() };
}
