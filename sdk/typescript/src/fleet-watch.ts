import type { Events } from './events.ts';
import type { Reply } from './messages.ts';
import type { Package } from './package.ts';

/** The pool reports a package that has had no result for this many seconds. */
const FIRST_S = 5;

/** The time between two reports of the same package grows by this factor, so that a long wait gives few reports. */
const GROWTH = 2;

type Fleet = Reply<'await_tasks'>['fleet'];

/** Reports that packages wait for their first workers. */
export class FleetWatch {
  readonly #events: Events;
  readonly #underWay: () => readonly Package[];
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #pauseS = FIRST_S;
  #fleet: Fleet = null;

  constructor(events: Events, underWay: () => readonly Package[], now: () => number) {
    this.#events = events;
    this.#underWay = underWay;
    this.#now = now;
  }

  /** Records that a package was started, and reports the package if it waits for long. */
  begin(): void {
    this.#timer ??= setTimeout(() => this.#look(), this.#pauseS * 1000);
    this.#timer.unref();
  }

  /**
   * Takes the fleet's description from an answer. The master sends the description while a package waits, if it knows
   * the fleet. A new message in it, which says why no worker can start, is reported at once.
   */
  answered(fleet: Fleet): void {
    const isNews = fleet !== null && fleet.message !== null && fleet.message !== this.#fleet?.message;
    this.#fleet = fleet;
    if (isNews) {
      this.#report(this.#waiting(0));
    }
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #look(): void {
    this.#timer = undefined;
    const waiting = this.#waiting(FIRST_S);
    this.#pauseS = waiting.length > 0 ? this.#pauseS * GROWTH : FIRST_S;
    this.#report(waiting);
    if (this.#underWay().length > 0) {
      this.begin();
    }
  }

  /** Returns the packages that have had neither a result nor a worker for this many seconds. */
  #waiting(leastS: number): Package[] {
    const since = this.#now() - leastS;
    return this.#underWay().filter(({ startedAt, progress }) => {
      return startedAt <= since && progress.done === 0 && progress.executors === 0;
    });
  }

  #report(waiting: readonly Package[]): void {
    if (waiting.length === 0) {
      return;
    }
    const waitedS = this.#now() - Math.min(...waiting.map(({ startedAt }) => startedAt));
    const { running = null, starting = null, message = null } = this.#fleet ?? {};
    const packageIds = waiting.map(({ id }) => id);
    this.#events.emit({ type: 'waiting_for_workers', packageIds, waitedS, running, starting, message });
  }
}
