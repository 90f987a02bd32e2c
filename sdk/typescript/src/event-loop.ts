// Long computations let the program's other work run: timers, requests, and the abort of the computation itself.

/** How long a computation may keep the event loop to itself. */
const LONGEST_MS = 10;

/** Steps between two looks at the clock, which costs as much as a short step. */
const STEPS = 32;

/** The breaks of one long computation. */
export class Breaks {
  #since = performance.now();
  #steps = 0;

  /** Counts a step; returns whether it is time for a break. */
  isDue(): boolean {
    this.#steps += 1;
    return this.#steps % STEPS === 0 && performance.now() - this.#since >= LONGEST_MS;
  }

  /** Like `isDue`, but looks at the clock each time: for steps that may be long. */
  isOverdue(): boolean {
    return performance.now() - this.#since >= LONGEST_MS;
  }

  /** Lets the event loop run everything else that waits for it. */
  async take(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}
