import type { Awaiter, Poll } from './awaiter.ts';
import type { Connection } from './connection.ts';
import { CloudparError } from './errors.ts';
import type { FleetWatch } from './fleet-watch.ts';
import type { Package } from './package.ts';
import type { Platform } from './platform.ts';
import type { ResultDispatcher } from './result-dispatcher.ts';

/** Asks the master for news while a package is running, one request at a time. */
export class Poller {
  readonly #connection: Connection;
  readonly #awaiter: Awaiter;
  readonly #dispatcher: ResultDispatcher;
  readonly #fleetWatch: FleetWatch;
  readonly #platform: Platform;
  #wake = new AbortController();
  #held: { readonly poll: Poll; readonly interruption: AbortController } | undefined;
  #isRunning = false;

  constructor(
    connection: Connection,
    awaiter: Awaiter,
    dispatcher: ResultDispatcher,
    fleetWatch: FleetWatch,
    platform: Platform,
  ) {
    this.#connection = connection;
    this.#awaiter = awaiter;
    this.#dispatcher = dispatcher;
    this.#fleetWatch = fleetWatch;
    this.#platform = platform;
  }

  /**
   * Records that a package is about to start. Until it has started, the master must not hold new requests, since they
   * cannot name this package.
   */
  startRequested(): void {
    this.#awaiter.startRequested();
  }

  /**
   * Records that the start has ended. `started` is undefined if the start failed, or if this client reads no results.
   */
  startDone(started: Package | undefined): void {
    this.#awaiter.startDone(started, this.#platform.now());
    this.#run();
  }

  /** Asks about a package that was started elsewhere. This interrupts a held request that does not name the package. */
  add(attached: Package): void {
    this.#interruptUnlessAbout(attached);
    this.startRequested();
    this.startDone(attached);
  }

  /** Pauses or resumes the requests for a package's results. */
  pause(paused: Package, isPaused: boolean): void {
    if (paused.paused !== isPaused) {
      paused.paused = isPaused;
      if (!isPaused) {
        this.#awaiter.resume(this.#platform.now());
        this.#interruptUnlessAbout(paused);
        this.#run();
      }
    }
  }

  /** Requests again the results that were left at the master. */
  rewind(left: Package): void {
    this.#awaiter.rewind(left, this.#platform.now());
    this.#interrupt();
    this.#run();
  }

  /** Stops asking about a package. The package itself continues. */
  drop(dropped: Package): void {
    this.#awaiter.drop(dropped);
  }

  /** Ends the pause between two requests. */
  end(): void {
    this.#wake.abort();
  }

  #interruptUnlessAbout(wanted: Package): void {
    if (!this.#held?.poll.asked.includes(wanted)) {
      this.#interrupt();
    }
  }

  /** Interrupts a held request, so that the next request takes the changes into account. */
  #interrupt(): void {
    this.#held?.interruption.abort(new Error('the poll is sent again: its packages have changed'));
  }

  /** Keeps requesting news while a package is running. */
  #run(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#loop();
    }
  }

  async #loop(): Promise<void> {
    for (;;) {
      const step = this.#awaiter.next(this.#platform.now());
      if (step === 'rest') {
        this.#isRunning = false; // no other code can run between the call of `next` and this line
        return;
      }
      if ('poll' in step) {
        await this.#send(step.poll);
      } else {
        await this.#platform.sleep(step.waitS, this.#wake.signal).catch(() => undefined);
      }
    }
  }

  /** Sends one request, and passes on the answer. */
  async #send(poll: Poll): Promise<void> {
    const { now } = this.#platform;
    const askedAt = now();
    const interruption = new AbortController();
    this.#held = { poll, interruption };
    const options = { holdS: poll.holdS, signal: interruption.signal };
    try {
      const reply = await this.#connection.call('await_tasks', poll.request, options);
      this.#held = undefined; // while the news is passed on, there is no request to interrupt
      const found = this.#awaiter.answered(poll, reply, now() - askedAt, now());
      this.#fleetWatch.answered(reply.fleet);
      for (const [awaited, news] of found) {
        await this.#dispatcher.dispatch(awaited, news);
      }
    } catch (error) {
      if (interruption.signal.aborted) {
        return; // the cursors have not moved, so the next answer repeats this news
      }
      const reason = error instanceof CloudparError ? error : new CloudparError(`an error in the pool: ${error}`);
      this.#awaiter.unanswered(poll, reason);
      for (const awaited of poll.asked) {
        this.#dispatcher.deliver(awaited, []);
      }
    } finally {
      this.#held = undefined;
    }
  }
}
