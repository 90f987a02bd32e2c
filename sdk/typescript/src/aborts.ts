import { setMaxListeners } from 'node:events';

/** Hears an abort, until `over` is aborted. A program may give one signal to any number of calls: that is no leak. */
export function onAbort(signal: AbortSignal, abort: () => void, over?: AbortSignal): void {
  setMaxListeners(0, signal);
  signal.addEventListener('abort', abort, { once: true, ...(over && { signal: over }) });
}
