import { anyOf, onAbort } from './abort-signals.ts';
import { CloudparError, TaskCancelled } from './errors.ts';
import { Breaks } from './event-loop.ts';
import type { Progress } from './messages.ts';
import type { CallInfo, Settled } from './outcomes.ts';
import type { Package } from './package.ts';
import { ResultBuffer } from './result-buffer.ts';
import type { Receiver } from './result-dispatcher.ts';
import type { Session } from './session.ts';
import type { Source } from './source.ts';

/** A failed map causes a warning if the program has not started to read its results after this many milliseconds. */
const UNREAD_MS = 1000;

/** A new package starts when this share of the buffer is free, so that packages are neither tiny nor late. */
const FREE_SHARE = 1 / 4;

/** Starts a package with at most `limit` of the next values; undefined if no value is left. */
export type StartNext = (limit: number, receiver: Receiver, signal: AbortSignal) => Promise<Package | undefined>;

/** What a map runs, and how the program reads the results. */
export interface MapPlan {
  readonly startNext: StartNext;
  /** The values; undefined for a range without `buffersize`, which is sent as two numbers. */
  readonly source: Source | undefined;
  readonly ordered: boolean;
  readonly buffersize: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly callInfo: CallInfo;
}

/**
 * The results of a map, which can be read while tasks are running. One reader can read them once:
 *
 * - `for await (const value of results)` yields the values. The first error ends the loop.
 * - `for await (const each of results.settled())` yields values and errors, each with its task's number.
 *
 * Leaving a loop early, by an error or a `break`, cancels the tasks that are not done. A map whose results are not read
 * runs to its end; if it fails, the program gets a warning. But with `buffersize`, only the first tasks of such a map
 * run, because further tasks start only while results are read. Results that wait for the reader take about 64 MiB at
 * most, or 80 MiB while the reader of an ordered map waits for a slow task.
 */
export class MapResults<T> implements AsyncIterable<T> {
  readonly #session: Session;
  readonly #plan: MapPlan;
  readonly #buffer: ResultBuffer;
  readonly #over = new AbortController();
  readonly #ends: { signal: AbortSignal; release: () => void };
  readonly #first: Promise<Package | undefined>;
  #given = 0;
  #packages = 0;
  #latest: Package | undefined;
  #complete = false;
  #failure: { readonly error: unknown } | undefined;
  #wanted = false;
  #unreadTimer: NodeJS.Timeout | undefined;

  /** @internal */
  constructor(session: Session, plan: MapPlan) {
    this.#session = session;
    this.#plan = plan;
    this.#buffer = new ResultBuffer(session, plan.ordered, plan.callInfo);
    this.#ends = anyOf(plan.signal, this.#over.signal, session.ending);
    onAbort(this.#ends.signal, () => this.#buffer.changed());
    if (plan.signal !== undefined) {
      onAbort(plan.signal, () => void this.cancel(), this.#over.signal);
    }
    this.#first = this.#startAll();
    this.#first.catch(() => undefined); // the reader gets the error, or the warning shows it
    onAbort(session.ending, () => this.#warnNow(), this.#over.signal);
    if (plan.signal?.aborted) {
      void this.cancel();
    }
  }

  /** Starts all packages. Resolves when the first package has started, and rejects if it cannot be started. */
  async #startAll(): Promise<Package | undefined> {
    const first = await this.#startOne().catch((error: unknown) => this.#fail(error));
    void this.#startOthers().catch((error: unknown) => this.#note(error));
    return first;
  }

  async #startOthers(): Promise<void> {
    const { source, buffersize } = this.#plan;
    while (source !== undefined && buffersize !== undefined && !source.ended) {
      if (this.#free >= Math.max(1, Math.floor(buffersize * FREE_SHARE))) {
        await this.#startOne();
      } else {
        await this.#buffer.news();
      }
      this.#ends.signal.throwIfAborted();
    }
    this.#complete = true;
    this.#buffer.changed();
  }

  get #free(): number {
    return (this.#plan.buffersize ?? Number.POSITIVE_INFINITY) - this.#buffer.unread;
  }

  async #startOne(): Promise<Package | undefined> {
    this.#ends.signal.throwIfAborted();
    const part = this.#buffer.part(this.#given);
    let started: Package | undefined;
    try {
      started = await this.#plan.startNext(this.#free, part, this.#ends.signal);
    } finally {
      if (started === undefined) {
        this.#buffer.remove(part);
      }
    }
    if (started !== undefined) {
      this.#given += started.tasks;
      this.#packages += 1;
      this.#latest = started;
      void this.#watch(part);
    }
    return started;
  }

  /** Warns about a part that ended with errors, unless the program has started to read the map's results. */
  async #watch(part: { readonly ended: boolean; readonly failure: CloudparError | undefined }): Promise<void> {
    while (!part.ended && part.failure === undefined && !this.#wanted && !this.#over.signal.aborted) {
      await this.#buffer.news();
    }
    if (part.failure !== undefined || (part.ended && this.#buffer.errors > 0)) {
      this.#warnSoon();
    }
  }

  #fail(error: unknown): never {
    this.#note(error);
    throw error;
  }

  #note(error: unknown): void {
    this.#plan.source?.release();
    this.#failure ??= { error };
    if (error instanceof Error) {
      this.#plan.callInfo.site?.mark(error);
    }
    this.#warnSoon();
    this.#buffer.changed();
  }

  #warnSoon(): void {
    if (!this.#wanted && !this.#session.ending.aborted) {
      this.#unreadTimer ??= setTimeout(() => this.#warnNow(), UNREAD_MS);
    }
  }

  #warnNow(): void {
    if (this.#unreadTimer !== undefined && !this.#wanted) {
      this.#wantIt();
      const settled = this.#failure?.error ?? this.#buffer.failure() ?? this.#buffer.anyError();
      const error = settled instanceof Error ? settled : new CloudparError(`a task has failed: ${settled}`);
      this.#session.events.emit({ type: 'unread_error', packageId: this.#latest?.id, error });
    }
  }

  /** Records that the program reads, cancels or detaches the map. It gets the errors, so no warning is needed. */
  #wantIt(): void {
    this.#wanted = true;
    clearTimeout(this.#unreadTimer);
  }

  /**
   * The package's id (with `buffersize`, the id of the package that was started last); undefined without tasks. The
   * promise rejects if the first package cannot be started.
   */
  get packageId(): Promise<string | undefined> {
    return this.#first.then(() => this.#latest?.id);
  }

  /** The progress of the started tasks; undefined before the first task has started. */
  get progress(): Progress | undefined {
    return this.#buffer.progress;
  }

  /** Stops the running tasks and drops the others, and drops all results. Reading further then throws TaskCancelled. */
  async cancel(): Promise<void> {
    this.#wantIt();
    this.#failure ??= { error: new TaskCancelled('the map was cancelled') };
    this.#over.abort(this.#failure.error);
    this.#ends.release();
    this.#plan.source?.release();
    await this.#first.catch(() => undefined);
    this.#buffer.clear();
    this.#buffer.changed();
  }

  /**
   * Lets the package continue when this pool is closed or this process ends. Its results can no longer be read here.
   *
   * @returns The package's id, for `pool.attach`, also in another process.
   * @throws TypeError when the map has no tasks, or has `buffersize`.
   * @throws the error of the start, if the package could not be started.
   */
  async detach(): Promise<string> {
    this.#wantIt();
    const started = await this.#first;
    if (started === undefined || this.#plan.buffersize !== undefined) {
      throw new TypeError(
        'only a map whose tasks are all in one package can be detached: it needs a task, and no buffersize',
      );
    }
    this.#session.forget(started);
    this.#failure ??= { error: new TypeError(`the map was detached: read it by pool.attach('${started.id}')`) };
    this.#buffer.clear();
    this.#over.abort(this.#failure.error);
    this.#ends.release();
    this.#buffer.changed();
    return started.id;
  }

  /** Yields the values, in the order of the tasks or as they come. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const each of this.settled()) {
      if (each.status === 'rejected') {
        throw each.reason;
      }
      yield each.value;
    }
  }

  /**
   * Yields values and errors, in the order of the tasks or as they come. If a package fails, each of its tasks without
   * a result gets the package's error.
   *
   * @throws CloudparError when a package could not be started, the master does not answer, or the map was cancelled.
   * @throws the signal's reason, once it is aborted, or the error of the values' own iterator.
   */
  async *settled(): AsyncGenerator<Settled<T>, void> {
    this.#wantIt();
    const breaks = new Breaks();
    try {
      for (;;) {
        this.#plan.signal?.throwIfAborted();
        const next = this.#buffer.take<T>();
        if (next !== undefined) {
          yield next;
          if (breaks.isOverdue()) {
            await breaks.take(); // without this, buffered results would come without a turn of the event loop
          }
        } else if (this.#isRead()) {
          return;
        } else {
          await this.#buffer.wait();
        }
      }
    } finally {
      void this.cancel(); // frees the packages' storage, and cancels the tasks that are not done
    }
  }

  /** Returns whether all results were read. Throws the reason if the other results will never come. */
  #isRead(): boolean {
    const failure = this.#buffer.failure();
    if (failure !== undefined) {
      throw failure;
    }
    if (this.#failure !== undefined && (this.#over.signal.aborted || this.#buffer.unread === 0)) {
      throw this.#failure.error;
    }
    return this.#complete && this.#buffer.unread === 0;
  }
}
