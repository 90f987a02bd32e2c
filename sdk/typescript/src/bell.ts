/** Wakes whoever waits. */
export class Bell {
  #waiting: (() => void)[] = [];

  /** Resolves when it rings next. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  ring(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) {
      wake();
    }
  }
}
