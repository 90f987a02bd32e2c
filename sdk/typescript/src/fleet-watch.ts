import type { Events } from './events.ts';
import type { Reply } from './messages.ts';
import type { Package } from './package.ts';

/** Times between two reports of the same waiting grow by this, so that a long one is not told without end. */
const GROWTH = 2;

/** Reports that packages wait for their first workers, as far as the master says so. */
export class FleetWatch {
  readonly #events: Events;
  #nextS = 0;
  #said = '';

  constructor(events: Events) {
    this.#events = events;
  }

  /** The master has answered; `fleet` comes with the answer while a package waits for its first workers. */
  answered(asked: readonly Package[], fleet: Reply<'await_tasks'>['fleet'], now: number): void {
    if (fleet === null) {
      [this.#nextS, this.#said] = [0, ''];
      return;
    }
    const waiting = asked.filter(({ phase, progress }) => phase === 'running' && progress.executors === 0);
    const waitedS = Math.max(0, ...waiting.map(({ startedAt }) => now - startedAt));
    const said = JSON.stringify(fleet);
    if (waiting.length === 0 || (waitedS < this.#nextS && said === this.#said)) {
      return;
    }
    [this.#nextS, this.#said] = [waitedS * GROWTH, said];
    const packageIds = waiting.map(({ id }) => id);
    this.#events.emit({ type: 'waiting_for_workers', packageIds, waitedS, ...fleet });
  }
}
