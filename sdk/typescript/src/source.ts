import { onAbort } from './abort-signals.ts';
import { Breaks } from './event-loop.ts';

/** The values of a map: one for each task. */
export type Values = Iterable<unknown> | AsyncIterable<unknown>;

/**
 * With `buffersize`, when a source pauses for longer than this, its values so far are started as a package. Faster
 * values travel together, since every package costs requests.
 */
const GATHER_MS = 50;

/**
 * Checks the values of a map.
 *
 * @throws TypeError when they cannot be iterated, or are a string: a program rarely wants a task for each character.
 */
export function checkValues(values: unknown): asserts values is Values {
  if (typeof values === 'string') {
    throw new TypeError(
      `the values are the string ${JSON.stringify(values.slice(0, 40))}: give an array, such as [text] for one task, ` +
        'or [...text] for a task for each character',
    );
  }
  const parts = values as Partial<Iterable<unknown> & AsyncIterable<unknown> & PromiseLike<unknown>> | null | undefined;
  if (typeof parts?.[Symbol.iterator] === 'function' || typeof parts?.[Symbol.asyncIterator] === 'function') {
    return;
  }
  const what = typeof parts?.then === 'function' ? 'a promise: await it first' : describe(values);
  throw new TypeError(`the values are ${what}; give an array, a range, or another iterable or async iterable`);
}

function describe(values: unknown): string {
  return values === null || values === undefined ? String(values) : `of type ${typeof values}`;
}

type NextValue = IteratorResult<unknown> | 'paused';

/** Reads values, and releases their source (`return()` of its iterator) when it is left before its end. */
export class Source {
  readonly #iterator: Iterator<unknown> | AsyncIterator<unknown>;
  readonly #async: boolean;
  #pending: Promise<IteratorResult<unknown>> | undefined;

  /** Whether every value was read. */
  ended = false;

  constructor(values: Values) {
    this.#async = Symbol.asyncIterator in values;
    this.#iterator = Symbol.asyncIterator in values ? values[Symbol.asyncIterator]() : values[Symbol.iterator]();
  }

  /**
   * Passes on the next values, at most `limit`; fewer if the source pauses. After an error the source is released.
   *
   * @throws the signal's reason once it is aborted, and any error of the source or of `append`.
   */
  async take(limit: number, append: (value: unknown) => void, signal: AbortSignal): Promise<void> {
    const breaks = new Breaks();
    const waiter = new Waiter(signal);
    try {
      for (let count = 0; count < limit; count += 1) {
        signal.throwIfAborted();
        const pauseMs = count > 0 && limit !== Number.POSITIVE_INFINITY ? GATHER_MS : undefined;
        const step = this.#async ? await this.#later(waiter, pauseMs) : (this.#iterator.next() as NextValue);
        if (step === 'paused') {
          return;
        }
        if (step.done) {
          this.ended = true;
          return;
        }
        append(step.value);
        if (breaks.isDue()) {
          await breaks.take();
        }
      }
    } catch (error) {
      this.release();
      throw error;
    } finally {
      waiter.end();
    }
  }

  async #later(waiter: Waiter, pauseMs: number | undefined): Promise<NextValue> {
    this.#pending ??= Promise.resolve(this.#iterator.next() as Promise<IteratorResult<unknown>>);
    const step = await waiter.wait(this.#pending, pauseMs);
    if (step !== 'paused') {
      this.#pending = undefined;
    }
    return step;
  }

  /** Reads no more. A source that is still making its next value is released afterwards. */
  release(): void {
    if (this.ended) {
      return;
    }
    this.ended = true;
    try {
      const released = this.#iterator.return?.();
      Promise.resolve(released).catch(() => undefined); // the program gets the error that ended the map instead
    } catch {
      // The same for a source that is not asynchronous.
    }
  }
}

/**
 * Waits for one promise after the other until the signal is aborted. It listens to the signal once, not for each value.
 */
class Waiter {
  readonly #over = new AbortController();
  #stop: ((reason: unknown) => void) | undefined;

  constructor(signal: AbortSignal) {
    onAbort(signal, () => this.#stop?.(signal.reason), this.#over.signal);
  }

  wait(next: Promise<IteratorResult<unknown>>, pauseMs: number | undefined): Promise<NextValue> {
    return new Promise((resolve, reject) => {
      const timer = pauseMs === undefined ? undefined : setTimeout(() => resolve('paused'), pauseMs);
      this.#stop = reject;
      next.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  end(): void {
    this.#over.abort();
  }
}
