import { onAbort } from './aborts.ts';
import { Bell } from './bell.ts';
import { type CloudparError, TaskCancelled } from './errors.ts';
import { type Settled, settle } from './outcomes.ts';
import type { Package, TaskResult } from './package.ts';
import type { Receiver, Session } from './session.ts';

/** Starts the package of a map; undefined if there is no task. */
export type Start = (receiver: Receiver) => Promise<Package | undefined>;

/**
 * The results of a map, which can be read while tasks are running. They are read once, by one reader:
 *
 * - `for await (const value of results)` gives the values. The first error ends the loop.
 * - `for await (const each of results.settled())` gives values and errors, each with its task's number.
 *
 * A loop that is left early, by an error or a `break`, cancels what still runs.
 */
export class MapResults<T> implements AsyncIterable<T> {
  readonly #session: Session;
  readonly #ordered: boolean;
  readonly #signal: AbortSignal | undefined;
  readonly #started: Promise<Package | undefined>;
  readonly #arrived = new Map<number, TaskResult>();
  readonly #bell = new Bell();
  #end: { readonly failure: CloudparError | undefined } | undefined;

  constructor(session: Session, start: Start, ordered: boolean, signal: AbortSignal | undefined) {
    this.#session = session;
    this.#ordered = ordered;
    this.#signal = signal;
    this.#started = start({
      receive: (results) => {
        for (const result of results) {
          this.#arrived.set(result.index, result);
        }
        this.#bell.ring();
      },
      end: (failure) => this.#close(failure),
    });
    this.#started.catch(() => undefined).finally(() => this.#bell.ring()); // the reader is told of the error
    if (signal !== undefined) {
      onAbort(signal, this.#abort);
      if (signal.aborted) {
        this.#abort();
      }
    }
  }

  readonly #abort = (): void => {
    this.#bell.ring();
    void this.cancel();
  };

  #close(failure: CloudparError | undefined): void {
    this.#end ??= { failure };
    this.#bell.ring();
  }

  /** The package's id; undefined if there is no task. */
  get packageId(): Promise<string | undefined> {
    return this.#started.then((started) => started?.id);
  }

  /** Stop what runs of it, and drop the rest. Reading on brings what has come, then throws TaskCancelled. */
  async cancel(): Promise<void> {
    const started = await this.#started.catch(() => undefined);
    this.#close(new TaskCancelled('the map was cancelled'));
    if (started !== undefined) {
      this.#session.read(started);
    }
  }

  /** The values, in order or as they come. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const each of this.settled()) {
      if (each.status === 'rejected') {
        throw each.reason;
      }
      yield each.value;
    }
  }

  /**
   * Values and errors, in order or as they come.
   *
   * @throws CloudparError when the package could not be started, or ended without all of its results.
   * @throws the signal's reason, once it is aborted.
   */
  async *settled(): AsyncGenerator<Settled<T>, void> {
    try {
      const started = await this.#start();
      for (let number = 0; number < (started?.tasks ?? 0); number += 1) {
        yield settle<T>(await this.#take(number));
      }
    } finally {
      this.#signal?.removeEventListener('abort', this.#abort);
      void this.cancel(); // frees its storage, and cancels what is left
    }
  }

  async #start(): Promise<Package | undefined> {
    if (this.#signal === undefined) {
      return this.#started;
    }
    const aborted = this.#bell.wait().then(() => this.#signal?.throwIfAborted());
    await Promise.race([this.#started, aborted]);
    this.#signal.throwIfAborted();
    return this.#started;
  }

  async #take(number: number): Promise<TaskResult> {
    for (;;) {
      this.#signal?.throwIfAborted();
      const result = this.#ordered ? this.#arrived.get(number) : this.#arrived.values().next().value;
      if (result !== undefined) {
        this.#arrived.delete(result.index);
        return result;
      }
      if (this.#end !== undefined) {
        throw this.#end.failure ?? new TaskCancelled('the map was cancelled, or read by somebody else');
      }
      await this.#bell.wait();
    }
  }
}
