// Records where the program called the pool. An error is made much later, when an answer arrives, so the error's own
// stack shows only the pool's code.

/** A place in the program. Recording a place takes some microseconds; its text is made only on demand. */
export class CallSite {
  readonly stack?: string;

  /** @param above The function whose caller is the place to record. */
  constructor(above: (...args: never[]) => unknown) {
    Error.captureStackTrace?.(this, above);
  }

  /** The lines of the stack after the message. */
  get frames(): string {
    const start = this.stack?.indexOf('\n    at ') ?? -1;
    return start < 0 ? '' : (this.stack?.slice(start) ?? '');
  }

  /** Gives an error this place as its stack. */
  mark(error: Error): void {
    if (this.frames !== '') {
      error.stack = `${error.name}: ${error.message}${this.frames}`;
    }
  }
}
