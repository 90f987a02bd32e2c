// Where the program called the pool. An error is made much later, when an answer comes: its own stack shows only the
// pool's code.

/** A place in the program. It costs some microseconds; its text is made only if it is asked for. */
export class CallSite {
  readonly stack?: string;

  /** @param above The function whose caller is the place. */
  constructor(above: (...args: never[]) => unknown) {
    Error.captureStackTrace?.(this, above);
  }

  /** The lines of a stack behind its message. */
  get frames(): string {
    const start = this.stack?.indexOf('\n    at ') ?? -1;
    return start < 0 ? '' : (this.stack?.slice(start) ?? '');
  }

  /** Give an error this place as its stack. */
  mark(error: Error): void {
    if (this.frames !== '') {
      error.stack = `${error.name}: ${error.message}${this.frames}`;
    }
  }
}
