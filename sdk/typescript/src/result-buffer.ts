import { type CloudparError, PackageFailed, TaskError } from './errors.ts';
import { MapPart } from './map-part.ts';
import type { Progress } from './messages.ts';
import { type CallInfo, copied, located, type Settled, settle, type TaskContext } from './outcomes.ts';
import type { Package, TaskResult } from './package.ts';
import { sumOf } from './progress.ts';
import { ResultStore } from './result-store.ts';
import type { Session } from './session.ts';
import { Wakeup } from './wakeup.ts';

/**
 * How many bytes of results may wait for their reader. Beyond this number the pool neither requests nor downloads more
 * results of the map, unless the reader waits for a result that has not come. A single answer or download may exceed
 * the number.
 */
const UNREAD_BYTES = 64 << 20;

/**
 * While the reader of an ordered map waits for a slow task, results of later tasks continue to arrive. When all waiting
 * results take this many bytes more than UNREAD_BYTES, results of the last tasks are dropped. They are requested again
 * when the reader has almost reached them.
 */
const AHEAD_BYTES = 16 << 20;

/** Keeps results between the session that receives them and their only reader, and limits how many results wait. */
export class ResultBuffer {
  readonly #session: Session;
  readonly #ordered: boolean;
  readonly #callInfo: CallInfo;
  readonly #store = new ResultStore();
  readonly #news = new Wakeup();
  #parts: MapPart[] = [];
  #downloadingBytes = 0;
  #reading = false;
  #next = 0;
  /** The summed progress of the packages that were read to their end. */
  #read: Progress | undefined;

  constructor(session: Session, ordered: boolean, callInfo: CallInfo = {}) {
    this.#session = session;
    this.#ordered = ordered;
    this.#callInfo = callInfo;
  }

  /** How many results with an error have come. */
  get errors(): number {
    return this.#store.errors;
  }

  /** Adds a part for one more package. */
  part(base: number): MapPart {
    const part = new MapPart(this, base);
    this.#parts.push(part);
    return part;
  }

  /** How many tasks of the started packages were not read, whether or not their results have come. */
  get unread(): number {
    return this.#parts.reduce((sum, { unread }) => sum + unread, 0);
  }

  /** The summed progress of all packages. */
  get progress(): Progress | undefined {
    const known = this.#parts.flatMap((part) => part.package?.progress ?? []);
    const all = this.#read === undefined ? known : [this.#read, ...known];
    return all.length === 0 ? undefined : all.reduce(sumOf);
  }

  put(part: MapPart, results: readonly TaskResult[]): void {
    this.#store.add(part, results);
    const waitsForLate = this.#ordered && this.#reading && this.#lacksNext;
    if (waitsForLate && this.#store.bytes > UNREAD_BYTES + AHEAD_BYTES) {
      this.#store.shrink(UNREAD_BYTES + AHEAD_BYTES / 2);
    }
    this.changed();
  }

  /** Wakes all callers that wait for news, because results came, or a package started or ended. */
  changed(): void {
    this.#regulate();
    this.#news.wake();
  }

  /** Resolves when results come next, or a package starts or ends. */
  news(): Promise<void> {
    return this.#news.wait();
  }

  admits(numbers: readonly number[], bytes: number): boolean {
    const needed = this.#reading && (!this.#ordered || numbers.includes(this.#next));
    const admitted = !this.#isFull || (needed && this.#lacksNext);
    this.#downloadingBytes += admitted ? bytes : 0;
    return admitted;
  }

  downloaded(bytes: number): void {
    this.#downloadingBytes -= bytes;
    this.#session.download();
  }

  get #isFull(): boolean {
    return this.#store.bytes + this.#downloadingBytes >= UNREAD_BYTES;
  }

  /** Whether the result that the reader needs has not come and is not being downloaded. */
  get #lacksNext(): boolean {
    return this.#ordered ? !this.#store.has(this.#next) : this.#store.isEmpty && this.#downloadingBytes === 0;
  }

  #regulate(): void {
    const paused = this.#isFull && !(this.#reading && this.#lacksNext);
    for (const part of this.#parts) {
      if (part.package !== undefined && !part.ended) {
        this.#session.pause(part.package, paused);
      }
    }
    if (!paused) {
      this.#session.download();
    }
  }

  /** Returns the next result if it has come, or its error if it will never come because its package failed. */
  take<T>(): Settled<T> | undefined {
    const wasFull = this.#isFull;
    const number = this.#ordered ? this.#next : this.#store.first;
    const found = number === undefined ? undefined : this.#store.take(number);
    if (found === undefined) {
      return this.#takeLost();
    }
    const [part, result] = found;
    if (wasFull) {
      this.#regulate();
    }
    const settled = settle<T>(result, this.#context(part));
    this.#taken(part);
    return settled;
  }

  /** Returns the error of one task, for a map that is not read; undefined if no task has failed yet. */
  anyError(): CloudparError | undefined {
    const first = this.#store.firstError; // other results are not read here, because there may be hundreds of thousands
    const failed = first === undefined ? this.#takeLost() : settle(first[1], this.#context(first[0]));
    return failed?.status === 'rejected' ? failed.reason : undefined;
  }

  /** Returns the next task that will never have a result, with its package's failure as its error. */
  #takeLost(): Settled<never> | undefined {
    for (const part of this.#ordered ? this.#parts.slice(0, 1) : this.#parts) {
      const [index, failure] = [part.package?.firstLost, part.failure];
      if (index !== undefined && failure !== undefined && (!this.#ordered || part.base + index === this.#next)) {
        part.package?.giveUp(index);
        const ofPackage = !(failure instanceof TaskError);
        const reason = located(copied(failure), { index, input: null }, this.#context(part), ofPackage);
        this.#taken(part);
        return { index: part.base + index, status: 'rejected', reason };
      }
    }
    return undefined;
  }

  /**
   * Returns the context of a part's tasks. It is kept with the part, because making a context for each result takes
   * longer than reading the result.
   */
  #context(part: MapPart): TaskContext {
    const { id: packageId, seals } = part.package as Package;
    part.context ??= { ...this.#callInfo, packageId, base: part.base, seals };
    return part.context;
  }

  #taken(part: MapPart): void {
    this.#next += 1;
    part.unread -= 1;
    if (part.unread === 0) {
      this.#drop(part);
    }
    if (this.#store.isNear(this.#next, UNREAD_BYTES / 2)) {
      this.#store.rewind();
      for (const { package: left } of this.#parts) {
        if (left?.isLeft) {
          this.#session.rewind(left);
        }
      }
    }
  }

  /**
   * Returns the reason why no more results of a package will come, if this is not a failure of the package itself: for
   * example, the master does not answer. For an ordered map, the reason is undefined until all packages before that
   * package were read.
   */
  failure(): CloudparError | undefined {
    const parts = this.#ordered ? this.#parts.slice(0, 1) : this.#parts;
    const ended = parts.find((part) => part.ended && part.unread > 0 && part.failure !== undefined);
    return ended?.failure instanceof PackageFailed ? undefined : ended?.failure;
  }

  /** Waits for a change. While the reader waits, the result that it needs is requested even if the buffer is full. */
  async wait(): Promise<void> {
    this.#reading = true;
    this.#regulate();
    await this.#news.wait();
    this.#reading = false;
  }

  /** Removes a part, for example because its package could not be started. */
  remove(part: MapPart): void {
    this.#parts = this.#parts.filter((each) => each !== part);
  }

  #drop(part: MapPart): void {
    this.remove(part);
    if (part.package !== undefined) {
      const { progress } = part.package;
      this.#read = this.#read === undefined ? progress : sumOf(this.#read, progress);
      this.#session.release(part.package);
    }
    this.#news.wake();
  }

  /** Drops all results; cancels running tasks and frees the storage of the packages. */
  clear(): void {
    for (const part of [...this.#parts]) {
      this.#drop(part);
    }
    this.#store.clear();
  }
}
