import type { Awaiting, Question } from './awaiting.ts';
import type { Connection } from './connection.ts';
import type { Deliveries } from './deliveries.ts';
import { CloudparError } from './errors.ts';
import type { FleetWatch } from './fleet-watch.ts';
import type { Package } from './package.ts';
import type { Surroundings } from './surroundings.ts';

/** Asks the master for news as long as a package is under way, one question at a time. */
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

  /** A package is about to be started: do not ask to be held without it. */
  startBegins(): void {
    this.#awaiting.startBegins();
  }

  /** The start has ended: `started` is the package, unless the start failed or no results are read here. */
  startEnds(started: Package | undefined): void {
    this.#awaiting.startEnds(started, this.#surroundings.now());
    this.#ask();
  }

  /** Ask for a package that the master has had for some time: it ends no question by itself. */
  add(attached: Package): void {
    this.#interruptUnlessAbout(attached);
    this.startBegins();
    this.startEnds(attached);
  }

  /** Ask for no more results of a package for now, or for more again. */
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

  /** Ask again for results that were left at the master. */
  rewind(left: Package): void {
    this.#awaiting.rewind(left, this.#surroundings.now());
    this.#interrupt();
    this.#ask();
  }

  /** Ask no more for a package, which continues to run. */
  drop(dropped: Package): void {
    this.#awaiting.drop(dropped);
  }

  /** Wait no longer with the next question. */
  end(): void {
    this.#wake.abort();
  }

  #interruptUnlessAbout(wanted: Package): void {
    if (!this.#held?.question.asked.includes(wanted)) {
      this.#interrupt();
    }
  }

  /** A question that the master holds open is put again, with what has changed. */
  #interrupt(): void {
    this.#held?.interruption.abort(new Error('the question is put again: it has changed'));
  }

  /** Keep requesting news as long as a package is under way. */
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
        this.#asking = false; // with no other code between the two
        return;
      }
      if ('ask' in step) {
        await this.#put(step.ask);
      } else {
        await this.#surroundings.sleep(step.waitS, this.#wake.signal).catch(() => undefined);
      }
    }
  }

  /** Put one question to the master, and hand on the answer. */
  async #put(question: Question): Promise<void> {
    const { now } = this.#surroundings;
    const askedAt = now();
    const interruption = new AbortController();
    this.#held = { question, interruption };
    const options = { holdS: question.holdS, signal: interruption.signal };
    try {
      const reply = await this.#connection.call('await_tasks', question.request, options);
      this.#held = undefined; // what is handed on now is not asked again
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
