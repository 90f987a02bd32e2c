// Where the program called the pool. An error is made much later, when an answer comes: its own stack shows only the
// pool's code.

/** A place in the program. It costs some microseconds; its text is made only if it is asked for. */
export class CallSite {
  readonly stack?: string;

  /** @param above The function whose caller is the place. */
  constructor(above: (...args: never[]) => unknown) {
    Error.captureStackTrace?.(this, above);
  }

  /** Give an error this place as its stack. */
  mark(error: Error): void {
    const frames = this.stack?.slice(this.stack.indexOf('\n    at '));
    if (frames?.startsWith('\n')) {
      error.stack = `${error.name}: ${error.message}${frames}`;
    }
  }
}
