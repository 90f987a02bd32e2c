// Lets long computations take breaks, so that the event loop can run other work: timers, requests, and the abort of the
// computation itself.

/** How long a computation may block the event loop. */
const LONGEST_MS = 10;

/** How many steps run between two readings of the clock, because reading the clock takes as long as a short step. */
const STEPS = 32;

/** The breaks of one long computation. */
export class Breaks {
  #startedAt = performance.now();
  #steps = 0;

  /** Counts a step; returns whether a break is due. */
  isDue(): boolean {
    this.#steps += 1;
    return this.#steps % STEPS === 0 && performance.now() - this.#startedAt >= LONGEST_MS;
  }

  /** Does the same as `isDue`, but reads the clock each time. It is for steps that may be long. */
  isOverdue(): boolean {
    return performance.now() - this.#startedAt >= LONGEST_MS;
  }

  /** Lets the event loop run all other work that waits for it. */
  async take(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#startedAt = performance.now();
  }
}
