import type { Events } from './events.ts';
import type { Reply } from './messages.ts';
import type { Package } from './package.ts';

/** A package without a result for so long is reported to the program. */
const FIRST_S = 5;

/** Times between two reports of the same waiting grow by this, so that a long one is not told without end. */
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

  /** A package was started: look after it. */
  begin(): void {
    this.#timer ??= setTimeout(() => this.#look(), this.#pauseS * 1000);
    this.#timer.unref();
  }

  /** The master has answered. It tells of the fleet while a package waits, if it knows of one. */
  answered(fleet: Fleet): void {
    const isNews = fleet !== null && fleet.message !== null && fleet.message !== this.#fleet?.message;
    this.#fleet = fleet;
    if (isNews) {
      this.#tell(this.#waiting(0));
    }
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #look(): void {
    this.#timer = undefined;
    const waiting = this.#waiting(FIRST_S);
    this.#pauseS = waiting.length > 0 ? this.#pauseS * GROWTH : FIRST_S;
    this.#tell(waiting);
    if (this.#underWay().length > 0) {
      this.begin();
    }
  }

  /** Packages of which no result is known for so long, nor that a worker is at them. */
  #waiting(leastS: number): Package[] {
    const since = this.#now() - leastS;
    return this.#underWay().filter(({ startedAt, progress }) => {
      return startedAt <= since && progress.done === 0 && progress.executors === 0;
    });
  }

  #tell(waiting: readonly Package[]): void {
    if (waiting.length === 0) {
      return;
    }
    const waitedS = this.#now() - Math.min(...waiting.map(({ startedAt }) => startedAt));
    const { running = null, starting = null, message = null } = this.#fleet ?? {};
    const packageIds = waiting.map(({ id }) => id);
    this.#events.emit({ type: 'waiting_for_workers', packageIds, waitedS, running, starting, message });
  }
}
