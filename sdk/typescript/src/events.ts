import { channel } from 'node:diagnostics_channel';
import type { CloudparError } from './errors.ts';
import type { Progress } from './messages.ts';

/** An event of a pool. Times are in seconds. */
export type PoolEvent =
  /** The master has not answered for over a second; requests to it are repeated. */
  | { readonly type: 'master_away'; readonly endpoint: string; readonly message: string }
  /** The master answers again. */
  | { readonly type: 'master_back'; readonly endpoint: string; readonly awayS: number }
  /** The master has made a request wait for over 5 s, because the account is at one of its limits. */
  | { readonly type: 'request_delayed'; readonly waitedS: number; readonly message: string }
  /**
   * Packages have had no result for 5 s or more: no worker has come yet, or their tasks are long. The event comes
   * sooner if the master says why no more workers can start; `message` is this reason. `running` and `starting` count
   * the workers' hosts. Each of the three is null if the master does not know it.
   */
  | {
      readonly type: 'waiting_for_workers';
      readonly packageIds: readonly string[];
      readonly waitedS: number;
      readonly running: number | null;
      readonly starting: number | null;
      readonly message: string | null;
    }
  /** The progress of a package. */
  | { readonly type: 'progress'; readonly packageId: string; readonly progress: Progress }
  /** A map or some of its tasks have failed, and the program has not read its results. */
  | { readonly type: 'unread_error'; readonly packageId: string | undefined; readonly error: CloudparError | Error };

/** Subscribers of `node:diagnostics_channel` with this name get every event of every pool. */
export const EVENT_CHANNEL = 'cloudpar:event';

const published = channel(EVENT_CHANNEL);

/**
 * Passes events to EVENT_CHANNEL and to the program's callback. Without a callback, a warning of the process reports
 * each event other than progress.
 */
export class Events {
  readonly #callback: ((event: PoolEvent) => void) | undefined;

  constructor(callback?: (event: PoolEvent) => void) {
    this.#callback = callback;
  }

  emit(event: PoolEvent): void {
    if (published.hasSubscribers) {
      published.publish(event);
    }
    if (this.#callback !== undefined) {
      guarded('onEvent', () => this.#callback?.(event));
    } else if (event.type !== 'progress') {
      warn(textOf(event));
    }
  }
}

/** Calls a function of the program: an error in it must not end the pool's own work. */
export function guarded(name: string, call: () => void): void {
  try {
    call();
  } catch (error) {
    warn(`the function given as ${name} failed: ${(error as Error)?.stack ?? error}`);
  }
}

/**
 * Node prints the warning to standard error; `process.on('warning')` and `--disable-warning=CloudparWarning` control
 * it.
 */
function warn(text: string): void {
  process.emitWarning(text, 'CloudparWarning');
}

function textOf(event: Exclude<PoolEvent, { type: 'progress' }>): string {
  switch (event.type) {
    case 'master_away':
      return `the master at ${event.endpoint} does not answer (${event.message}); waiting for it`;
    case 'master_back':
      return `the master at ${event.endpoint} is back after ${event.awayS.toFixed(0)} s`;
    case 'request_delayed':
      return `the master has made a request wait for ${event.waitedS.toFixed(0)} s: ${event.message}`;
    case 'waiting_for_workers': {
      const waited = `no result after ${event.waitedS.toFixed(0)} s`;
      return event.running === null
        ? `${waited}: the tasks are long, or no worker runs (\`cloudpar worker\` starts one)`
        : `${waited}: ${event.running} workers, ${event.starting} starting${event.message ? `; ${event.message}` : ''}`;
    }
    default:
      return (
        `a map failed, and its results were not read: ${event.error.name}: ${event.error.message}; read them by ` +
        '`for await`, or use pool.start() for tasks whose results this program does not read'
      );
  }
}
