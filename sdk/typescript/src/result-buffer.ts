import type { CallSite } from './call-site.ts';
import type { CloudparError } from './errors.ts';
import type { Progress } from './messages.ts';
import { type Settled, settle } from './outcomes.ts';
import type { Package, TaskResult } from './package.ts';
import { Wakeup } from './wakeup.ts';

/**
 * Bytes of results that may wait for their reader. Beyond it the pool neither asks for more results of the map nor
 * downloads them, unless the reader waits for one that has not come. One answer or download may go over it.
 */
const UNREAD_BYTES = 64 << 20;

/** What a result takes in memory beside its data, about. */
const RESULT_BYTES = 256;

/** What the buffer needs of the session that fills it. */
export interface Supply {
  /** Ask for no more results of a package, or for more again. */
  pause(paused: Package, isPaused: boolean): void;
  /** There may be room for downloads that wait. */
  download(): void;
  /** Nothing more is wanted of a package. */
  read(done: Package): void;
}

/** A package's part of a map: its tasks have the numbers [base, base + n). Receives its results for the buffer. */
export class Part {
  readonly base: number;
  package: Package | undefined;
  unread = 0;
  failure: CloudparError | undefined;
  ended = false;
  readonly #buffer: ResultBuffer;

  constructor(buffer: ResultBuffer, base: number) {
    this.#buffer = buffer;
    this.base = base;
  }

  /** The master has the package; this is called before its first results come. */
  started(started: Package): void {
    this.package = started;
    this.unread = started.tasks;
    this.#buffer.changed();
  }

  receive(results: readonly TaskResult[]): void {
    this.#buffer.put(this, results);
  }

  end(failure: CloudparError | undefined): void {
    this.ended = true;
    this.failure = failure;
    this.#buffer.changed();
  }

  /** Whether a payload of so many bytes may be downloaded now; if so, its bytes count from now on. */
  admits(indices: readonly number[], bytes: number): boolean {
    return this.#buffer.admits(
      indices.map((index) => this.base + index),
      bytes,
    );
  }

  /** The download of these bytes has ended, well or not. */
  downloaded(bytes: number): void {
    this.#buffer.downloaded(bytes);
  }
}

/** Results between the session that receives them and the one reader of them, with a bound on what waits unread. */
export class ResultBuffer {
  readonly #supply: Supply;
  readonly #ordered: boolean;
  readonly #site: CallSite | undefined;
  readonly #arrived = new Map<number, [Part, TaskResult]>();
  readonly #news = new Wakeup();
  #parts: Part[] = [];
  #unreadBytes = 0;
  #downloadingBytes = 0;
  #reading = false;
  #next = 0;
  /** Of the packages that were read to their end, together. */
  #read: Progress | undefined;
  /** Tasks whose results ended in an error, as far as they have come. */
  errors = 0;

  constructor(supply: Supply, ordered: boolean, site?: CallSite) {
    this.#supply = supply;
    this.#ordered = ordered;
    this.#site = site;
  }

  /** Make room for one more package. */
  part(base: number): Part {
    const part = new Part(this, base);
    this.#parts.push(part);
    return part;
  }

  /** Tasks whose results were not read. */
  get unread(): number {
    return this.#parts.reduce((sum, { unread }) => sum + unread, 0);
  }

  /** How far the packages are, together. */
  get progress(): Progress | undefined {
    const known = this.#parts.flatMap((part) => part.package?.progress ?? []);
    const all = this.#read === undefined ? known : [this.#read, ...known];
    return all.length === 0 ? undefined : all.reduce(sumOf);
  }

  put(part: Part, results: readonly TaskResult[]): void {
    for (const result of results) {
      this.#arrived.set(part.base + result.index, [part, result]);
      this.#unreadBytes += sizeOf(result);
      this.errors += result.outcome === 'ok' ? 0 : 1;
    }
    this.changed();
  }

  /** Something came, began or ended: whoever waits looks again. */
  changed(): void {
    this.#regulate();
    this.#news.wake();
  }

  /** Resolves when something comes, begins or ends next. */
  news(): Promise<void> {
    return this.#news.wait();
  }

  admits(numbers: readonly number[], bytes: number): boolean {
    const needed = this.#reading && (!this.#ordered || numbers.includes(this.#next));
    const admitted = !this.#isFull || (needed && this.#waitsInVain);
    this.#downloadingBytes += admitted ? bytes : 0;
    return admitted;
  }

  downloaded(bytes: number): void {
    this.#downloadingBytes -= bytes;
    this.#supply.download();
  }

  get #isFull(): boolean {
    return this.#unreadBytes + this.#downloadingBytes >= UNREAD_BYTES;
  }

  /** Whether nothing that has come, or is being downloaded, helps the reader. */
  get #waitsInVain(): boolean {
    return this.#ordered ? !this.#arrived.has(this.#next) : this.#arrived.size === 0 && this.#downloadingBytes === 0;
  }

  #regulate(): void {
    const paused = this.#isFull && !(this.#reading && this.#waitsInVain);
    for (const part of this.#parts) {
      if (part.package !== undefined && !part.ended) {
        this.#supply.pause(part.package, paused);
      }
    }
    if (!paused) {
      this.#supply.download();
    }
  }

  /** The next result, if it has come. */
  take<T>(): Settled<T> | undefined {
    const number = this.#ordered ? this.#next : this.#arrived.keys().next().value;
    const found = number === undefined ? undefined : this.#arrived.get(number);
    if (number === undefined || found === undefined) {
      return undefined;
    }
    const [part, result] = found;
    this.#arrived.delete(number);
    this.#next += 1;
    const wasFull = this.#isFull;
    this.#unreadBytes -= sizeOf(result);
    if (wasFull) {
      this.#regulate();
    }
    const { id: packageId, seals } = part.package as Package;
    const settled = settle<T>(result, { packageId, base: part.base, seals, site: this.#site });
    part.unread -= 1;
    if (part.unread === 0) {
      this.#drop(part);
    }
    return settled;
  }

  /** Why the next result will never come, if so. Of an ordered map, only once those before it were read. */
  failure(): CloudparError | undefined {
    const parts = this.#ordered ? this.#parts.slice(0, 1) : this.#parts;
    return parts.find(({ ended, unread, failure }) => ended && unread > 0 && failure !== undefined)?.failure;
  }

  /** Wait for something to change, on behalf of the reader. */
  async wait(): Promise<void> {
    this.#reading = true;
    this.#regulate();
    await this.#news.wait();
    this.#reading = false;
  }

  /** There is no package of that part. */
  remove(part: Part): void {
    this.#parts = this.#parts.filter((each) => each !== part);
  }

  #drop(part: Part): void {
    this.remove(part);
    if (part.package !== undefined) {
      const { progress } = part.package;
      this.#read = this.#read === undefined ? progress : sumOf(this.#read, progress);
      this.#supply.read(part.package);
    }
    this.#news.wake();
  }

  /** Want nothing more: what still runs is cancelled, and its storage freed. */
  clear(): void {
    for (const part of [...this.#parts]) {
      this.#drop(part);
    }
    this.#arrived.clear();
    this.#unreadBytes = 0;
  }
}

function sizeOf({ data }: TaskResult): number {
  return RESULT_BYTES + (data?.length ?? 0);
}

function sumOf(one: Progress, other: Progress): Progress {
  const names = ['tasks', 'done', 'errors', 'charged_us', 'execute_us', 'retrieve_us', 'publish_us'] as const;
  const sums = Object.fromEntries(names.map((name) => [name, one[name] + other[name]]));
  const means = one.mean_us * one.done + other.mean_us * other.done;
  const mean_us = Math.round(means / Math.max(1, one.done + other.done));
  return { ...one, ...sums, mean_us, executors: Math.max(one.executors, other.executors) };
}
