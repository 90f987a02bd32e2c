import type { Awaiting, Question } from './awaiting.ts';
import type { Connection } from './connection.ts';
import type { Deliveries } from './deliveries.ts';
import { CloudparError } from './errors.ts';
import type { FleetWatch } from './fleet-watch.ts';
import type { Package } from './package.ts';
import type { Surroundings } from './surroundings.ts';

/** Asks the master for news while a package is running, one request at a time. */
export class Questions {
  readonly #connection: Connection;
  readonly #awaiting: Awaiting;
  readonly #deliveries: Deliveries;
  readonly #fleetWatch: FleetWatch;
  readonly #surroundings: Surroundings;
  #wake = new AbortController();
  #held: { readonly question: Question; readonly interruption: AbortController } | undefined;
  #asking = false;

  constructor(
    connection: Connection,
    awaiting: Awaiting,
    deliveries: Deliveries,
    fleetWatch: FleetWatch,
    surroundings: Surroundings,
  ) {
    this.#connection = connection;
    this.#awaiting = awaiting;
    this.#deliveries = deliveries;
    this.#fleetWatch = fleetWatch;
    this.#surroundings = surroundings;
  }

  /** A package is about to be started: the master must not hold a request without it. */
  startBegins(): void {
    this.#awaiting.startBegins();
  }

  /** The start has ended: `started` is the package, unless the start failed or no results are read here. */
  startEnds(started: Package | undefined): void {
    this.#awaiting.startEnds(started, this.#surroundings.now());
    this.#ask();
  }

  /** Asks for a package that was started elsewhere, without interrupting a held request. */
  add(attached: Package): void {
    this.#interruptUnlessAbout(attached);
    this.startBegins();
    this.startEnds(attached);
  }

  /** Pauses or resumes the requests for a package's results. */
  pause(paused: Package, isPaused: boolean): void {
    if (paused.paused !== isPaused) {
      paused.paused = isPaused;
      if (!isPaused) {
        this.#awaiting.resume(this.#surroundings.now());
        this.#interruptUnlessAbout(paused);
        this.#ask();
      }
    }
  }

  /** Asks again for results that were left at the master. */
  rewind(left: Package): void {
    this.#awaiting.rewind(left, this.#surroundings.now());
    this.#interrupt();
    this.#ask();
  }

  /** Asks no more for a package, which continues to run. */
  drop(dropped: Package): void {
    this.#awaiting.drop(dropped);
  }

  /** Sends the next request at once. */
  end(): void {
    this.#wake.abort();
  }

  #interruptUnlessAbout(wanted: Package): void {
    if (!this.#held?.question.asked.includes(wanted)) {
      this.#interrupt();
    }
  }

  /** Repeats a held request with what has changed. */
  #interrupt(): void {
    this.#held?.interruption.abort(new Error('the question is put again: it has changed'));
  }

  /** Keeps requesting news while a package is running. */
  #ask(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
    if (!this.#asking) {
      this.#asking = true;
      void this.#askOn();
    }
  }

  async #askOn(): Promise<void> {
    for (;;) {
      const step = this.#awaiting.next(this.#surroundings.now());
      if (step === 'rest') {
        this.#asking = false; // with no other code in between
        return;
      }
      if ('ask' in step) {
        await this.#put(step.ask);
      } else {
        await this.#surroundings.sleep(step.waitS, this.#wake.signal).catch(() => undefined);
      }
    }
  }

  /** Sends one request, and passes on the answer. */
  async #put(question: Question): Promise<void> {
    const { now } = this.#surroundings;
    const askedAt = now();
    const interruption = new AbortController();
    this.#held = { question, interruption };
    const options = { holdS: question.holdS, signal: interruption.signal };
    try {
      const reply = await this.#connection.call('await_tasks', question.request, options);
      this.#held = undefined; // news that is passed on now is not requested again
      const found = this.#awaiting.answered(question, reply, now() - askedAt, now());
      this.#fleetWatch.answered(reply.fleet);
      for (const [awaited, news] of found) {
        await this.#deliveries.handOn(awaited, news);
      }
    } catch (error) {
      if (interruption.signal.aborted) {
        return; // the next answer repeats what this one had: the cursors have not moved
      }
      const reason = error instanceof CloudparError ? error : new CloudparError(`an error in the pool: ${error}`);
      this.#awaiting.unanswered(question, reason);
      for (const awaited of question.asked) {
        this.#deliveries.deliver(awaited, []);
      }
    } finally {
      this.#held = undefined;
    }
  }
}
