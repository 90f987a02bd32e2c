/** Wakes all callers that wait. */
export class Wakeup {
  #waiting: (() => void)[] = [];

  /** Resolves at the next call of `wake`. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) {
      wake();
    }
  }
}
