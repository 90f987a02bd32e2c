import { Arrivals } from './arrivals.ts';
import { type CloudparError, PackageFailed } from './errors.ts';
import type { Progress } from './messages.ts';
import { type About, copied, located, type Settled, settle, type TaskContext } from './outcomes.ts';
import type { Package, TaskResult } from './package.ts';
import { Part } from './part.ts';
import { sumOf } from './progress.ts';
import type { Session } from './session.ts';
import { Wakeup } from './wakeup.ts';

/**
 * How many bytes of results may wait for their reader. Beyond it the pool neither requests nor downloads more results
 * of the map, unless the reader waits for one that has not come. One answer or download may exceed it.
 */
const UNREAD_BYTES = 64 << 20;

/**
 * While the reader of an ordered map waits for a slow task, results of later tasks continue to arrive. When they take
 * this many bytes more, those of the last tasks are dropped: the master sends them again when the reader comes near.
 */
const AHEAD_BYTES = 16 << 20;

/** Results between the session that receives them and their only reader, with a bound on those that wait. */
export class ResultBuffer {
  readonly #session: Session;
  readonly #ordered: boolean;
  readonly #about: About;
  readonly #arrivals = new Arrivals();
  readonly #news = new Wakeup();
  #parts: Part[] = [];
  #downloadingBytes = 0;
  #reading = false;
  #next = 0;
  /** The summed progress of the packages that were read to their end. */
  #read: Progress | undefined;

  constructor(session: Session, ordered: boolean, about: About = {}) {
    this.#session = session;
    this.#ordered = ordered;
    this.#about = about;
  }

  /** How many results with an error have come. */
  get errors(): number {
    return this.#arrivals.errors;
  }

  /** Makes room for one more package. */
  part(base: number): Part {
    const part = new Part(this, base);
    this.#parts.push(part);
    return part;
  }

  /** How many tasks have results that were not read. */
  get unread(): number {
    return this.#parts.reduce((sum, { unread }) => sum + unread, 0);
  }

  /** The summed progress of all packages. */
  get progress(): Progress | undefined {
    const known = this.#parts.flatMap((part) => part.package?.progress ?? []);
    const all = this.#read === undefined ? known : [this.#read, ...known];
    return all.length === 0 ? undefined : all.reduce(sumOf);
  }

  put(part: Part, results: readonly TaskResult[]): void {
    this.#arrivals.add(part, results);
    const waitsForLate = this.#ordered && this.#reading && this.#lacksNext;
    if (waitsForLate && this.#arrivals.bytes > UNREAD_BYTES + AHEAD_BYTES) {
      this.#arrivals.shrink(UNREAD_BYTES + AHEAD_BYTES / 2);
    }
    this.changed();
  }

  /** Results came, or a package started or ended: wakes all callers that wait for news. */
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
    return this.#arrivals.bytes + this.#downloadingBytes >= UNREAD_BYTES;
  }

  /** Whether the result that the reader needs has neither come nor is being downloaded. */
  get #lacksNext(): boolean {
    return this.#ordered ? !this.#arrivals.has(this.#next) : this.#arrivals.isEmpty && this.#downloadingBytes === 0;
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

  /** Returns the next result, if it has come, or will never come because its package failed. */
  take<T>(): Settled<T> | undefined {
    const wasFull = this.#isFull;
    const number = this.#ordered ? this.#next : this.#arrivals.first;
    const found = number === undefined ? undefined : this.#arrivals.take(number);
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
    const arrival = this.#arrivals.firstError; // the others are not settled: there may be hundreds of thousands
    const failed = arrival === undefined ? this.#takeLost() : settle(arrival[1], this.#context(arrival[0]));
    return failed?.status === 'rejected' ? failed.reason : undefined;
  }

  /** Returns the next task that will never have a result, with its package's failure as its error. */
  #takeLost(): Settled<never> | undefined {
    for (const part of this.#ordered ? this.#parts.slice(0, 1) : this.#parts) {
      const [index, failure] = [part.package?.firstLost, part.failure];
      if (index !== undefined && failure !== undefined && (!this.#ordered || part.base + index === this.#next)) {
        part.package?.giveUp(index);
        const reason = located(copied(failure), { index, input: null }, this.#context(part));
        this.#taken(part);
        return { index: part.base + index, status: 'rejected', reason };
      }
    }
    return undefined;
  }

  /** Kept with the part: creating an object for each result takes longer than reading the result. */
  #context(part: Part): TaskContext {
    const { id: packageId, seals } = part.package as Package;
    part.context ??= { ...this.#about, packageId, base: part.base, seals };
    return part.context;
  }

  #taken(part: Part): void {
    this.#next += 1;
    part.unread -= 1;
    if (part.unread === 0) {
      this.#drop(part);
    }
    if (this.#arrivals.isNear(this.#next, UNREAD_BYTES / 2)) {
      this.#arrivals.rewind();
      for (const { package: left } of this.#parts) {
        if (left?.isLeft) {
          this.#session.rewind(left);
        }
      }
    }
  }

  /**
   * Returns why nothing more will come, if the reason is no package's own failure. For an ordered map, only after the
   * results before it were read.
   */
  failure(): CloudparError | undefined {
    const parts = this.#ordered ? this.#parts.slice(0, 1) : this.#parts;
    const ended = parts.find((part) => part.ended && part.unread > 0 && part.failure !== undefined);
    return ended?.failure instanceof PackageFailed ? undefined : ended?.failure;
  }

  /** Waits for a change, for the reader. */
  async wait(): Promise<void> {
    this.#reading = true;
    this.#regulate();
    await this.#news.wait();
    this.#reading = false;
  }

  /** The part has no package. */
  remove(part: Part): void {
    this.#parts = this.#parts.filter((each) => each !== part);
  }

  #drop(part: Part): void {
    this.remove(part);
    if (part.package !== undefined) {
      const { progress } = part.package;
      this.#read = this.#read === undefined ? progress : sumOf(this.#read, progress);
      this.#session.read(part.package);
    }
    this.#news.wake();
  }

  /** Drops all results: cancels running tasks and frees their storage. */
  clear(): void {
    for (const part of [...this.#parts]) {
      this.#drop(part);
    }
    this.#arrivals.clear();
  }
}
