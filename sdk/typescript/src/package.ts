// One package as its client sees it: a state machine without I/O or clocks, like its counterpart in the Python SDK.
//
//     running ──take or fetched──> ended
//        ^ └──────lost(error)───────^ │
//        └───────────leave────────────┘
//
// Results come in any order and possibly twice, and each is passed on once. Results in blobs must be downloaded
// (`fetches`) and come later. The package has ended when no download is running, no result was left at the master, and
// either all results have arrived or the master says that no more results will come. `lost` also ends the package.

import { type CloudparError, FAILURE_ERRORS, Gone, PackageFailed } from './errors.ts';
import type { Link, Message, Progress } from './messages.ts';
import type { Seals } from './seals.ts';

type Outcome = Message<'TaskResult'>[1];

/** The result of one task, as it came from the master. */
export interface TaskResult {
  readonly index: number;
  readonly outcome: Outcome;
  readonly data: Uint8Array | null;
  readonly message: string | null;
  readonly traceback: string | null;
  readonly stdout: string | null;
  readonly stderr: string | null;
  readonly seal: Uint8Array | null;
  /** For a task that raised: its arguments, as a text. */
  readonly input: string | null;
  /** The place of a large result. */
  readonly blob: Message<'TaskResult'>[4];
  /** The cursor of the request whose answer has this result. */
  readonly page: number;
  /** Why the result must not be read. */
  readonly broken?: CloudparError;
}

/** The place of a large result: bytes [offset, offset + size) of a blob. */
export interface LargeResult {
  readonly result: TaskResult;
  readonly key: string;
  readonly size: number;
  readonly offset: number;
}

/** The news in a status: complete results, and results that must be downloaded first. */
export interface News {
  /**
   * The complete results, which can be read once. Each result is made when it is read, so that breaks are possible
   * between results.
   */
  readonly results: Iterable<TaskResult>;
  readonly fetches: readonly LargeResult[];
  readonly links: Readonly<Record<string, Link>>;
  /** The cursor of the request that the status answers. A request with the same cursor brings new links. */
  readonly page: number;
}

const NO_NEWS: News = { results: [], fetches: [], links: {}, page: 0 };

const SEEN = 1;
const LEFT = 2;

/** The client's knowledge of one package. */
export class Package {
  readonly id: string;
  readonly tasks: number;
  /** The seals of a sealed package. */
  readonly seals: Seals | undefined;
  /** The time of its start, by the caller's clock. */
  readonly startedAt: number;
  phase: 'running' | 'ended' = 'running';
  state: Message<'PackageStatus'>['state'] = 'running';
  /** The position up to which the package's results have been read. */
  cursor = 0;
  /** Whether the package's results come faster than they are read, so that no more results are requested now. */
  paused = false;
  /** Whether further results are ready at the master. */
  more = false;
  progress: Progress;
  /** Why tasks without a result will never have a result; undefined until this is known. */
  failure: CloudparError | undefined;

  /** For each task: 0 (not seen), SEEN or LEFT. */
  readonly #seen: Uint8Array;
  /** The first page with results that were left at the master. */
  #leftAt: number | undefined;
  /** All tasks before this one are SEEN or LEFT; none of them becomes unseen again. */
  #unseenFrom = 0;
  #received = 0;
  #fetching = 0;
  /** Whether all results are read a second time. */
  #reread = false;

  constructor(id: string, tasks: number, startedAt: number, seals?: Seals) {
    this.id = id;
    this.seals = seals;
    this.tasks = tasks;
    this.startedAt = startedAt;
    this.#seen = new Uint8Array(tasks);
    const nothing = { charged_us: 0, mean_us: 0, execute_us: 0, retrieve_us: 0, publish_us: 0 };
    this.progress = { tasks, done: 0, errors: 0, executors: 0, ...nothing };
  }

  /** Reads a status, and returns its new results. */
  take(status: Message<'PackageStatus'>): News {
    if (this.phase === 'ended') {
      return NO_NEWS;
    }
    const arrived: Message<'TaskResult'>[] = [];
    const fetches: LargeResult[] = [];
    const page = this.cursor;
    for (const raw of status.results) {
      const wasLeft = this.#seen[raw[0]] === LEFT;
      if (this.#isNew(raw[0])) {
        const blob = raw[4];
        if (blob === null) {
          arrived.push(wasLeft ? withoutOutput(raw) : raw);
        } else {
          const [key, size, offset] = blob;
          fetches.push({ result: resultOf(wasLeft ? withoutOutput(raw) : raw, page), key, size, offset });
        }
      }
    }
    const cancelled = this.#newlyCancelled(status.cancelled);
    this.#received += arrived.length + cancelled.length;
    this.#fetching += fetches.length;
    this.cursor = status.cursor;
    this.state = status.state;
    this.more = status.more;
    this.progress = status.progress;
    if (!['running', 'completed', 'error'].includes(status.state)) {
      this.failure ??= packageError(status);
      if (this.isLeft) {
        this.rewind(); // the tasks without a result are known only when all results have arrived
      }
    }
    this.#endIfDone();
    return { results: oneByOne(arrived, cancelled, page), fetches, links: status.links, page };
  }

  #isNew(index: number): boolean {
    const isNew = this.#seen[index] !== SEEN;
    this.#seen[index] = SEEN;
    return isNew;
  }

  /** Returns the tasks of these ranges that have no result yet. */
  #newlyCancelled(ranges: readonly (readonly [number, number])[]): number[] {
    const found: number[] = [];
    for (const [start, end] of ranges) {
      for (let index = start; index < end; index += 1) {
        if (this.#isNew(index)) {
          found.push(index);
        }
      }
    }
    return found;
  }

  /**
   * The first task that will never have a result because the package failed; undefined if no such task is known. The
   * task is known once all statuses were read, even if payloads are not downloaded yet: a reader that waits for such a
   * task may have no room for these payloads.
   */
  get firstLost(): number | undefined {
    const isDelivered = this.phase === 'ended' || (!this.more && !this.isLeft);
    if (!isDelivered || !(this.failure instanceof PackageFailed)) {
      return undefined;
    }
    const index = this.#seen.indexOf(0, this.#unseenFrom);
    this.#unseenFrom = index < 0 ? this.tasks : index;
    return index < 0 ? undefined : index;
  }

  /** Records that the reader has got the error of a lost task. */
  giveUp(index: number): void {
    this.#seen[index] = SEEN;
  }

  /** Records that this many payloads were downloaded. */
  fetched(count: number): void {
    this.#fetching -= count;
    this.#received += count;
    this.#endIfDone();
  }

  /** Drops results that were passed on. They come again after `rewind`. */
  leave(results: readonly TaskResult[]): void {
    for (const { index, page } of results) {
      this.#seen[index] = LEFT;
      this.#leftAt = Math.min(this.#leftAt ?? page, page);
    }
    this.#received -= results.length;
    this.phase = 'running';
  }

  /** Whether results were left at the master. */
  get isLeft(): boolean {
    return this.#leftAt !== undefined;
  }

  /** Reads again from the first page with results that were left. */
  rewind(): void {
    this.cursor = this.#leftAt ?? this.cursor;
    this.#leftAt = undefined;
    this.more = true;
  }

  /** Ends the package with an error: no more news will come. */
  lost(error: CloudparError): void {
    if (this.phase !== 'ended') {
      this.failure = error;
      this.phase = 'ended';
      this.more = false;
    }
  }

  #endIfDone(): void {
    const whole = this.#received === this.tasks;
    if (
      this.phase === 'ended' ||
      this.#fetching > 0 ||
      this.isLeft ||
      !(whole || (this.state !== 'running' && !this.more))
    ) {
      return;
    }
    if (this.#hasMissedResults()) {
      this.cursor = 0;
      this.more = true;
      this.#reread = true;
      return;
    }
    this.phase = 'ended';
    if (!whole) {
      const missing = this.tasks - this.#received;
      this.failure ??= new PackageFailed(
        `the master says that package ${this.id} is ${this.state}, but ${missing} of its results never came: ` +
          'please report this',
      );
    }
  }

  /**
   * Whether the ended package has results that this client has not read, so that it must read them all again.
   *
   * If the operator restores the master's data from a backup, tasks that had ended run again. Their results, and those of
   * other tasks, then come at positions before this client's cursor.
   */
  #hasMissedResults(): boolean {
    return this.#received < this.progress.done && !this.#reread && this.state !== 'expired';
  }
}

function* oneByOne(
  arrived: readonly Message<'TaskResult'>[],
  cancelled: readonly number[],
  page: number,
): Generator<TaskResult> {
  for (const raw of arrived) {
    yield resultOf(raw, page);
  }
  for (const index of cancelled) {
    // The master sends only the numbers of these tasks, but for receivers they end like other tasks.
    const message = 'the task was cancelled';
    yield resultOf([index, 'cancelled', 0, null, null, message, null, null, null, null, null], page);
  }
}

function resultOf(raw: Message<'TaskResult'>, page: number): TaskResult {
  const [index, outcome, , data, blob, message, traceback, stdout, stderr, seal, input] = raw;
  return { index, outcome, data, message, traceback, stdout, stderr, seal, input, blob, page };
}

/** Removes the output of a result that was left at the master, because the output was passed on the first time. */
function withoutOutput(raw: Message<'TaskResult'>): Message<'TaskResult'> {
  const [index, outcome, us, data, blob, message, traceback, , , seal, input] = raw;
  return [index, outcome, us, data, blob, message, traceback, null, null, seal, input];
}

/** Returns the error of a package that ended without all of its results, or that was deleted ("expired"). */
export function packageError({ package_id, state, reason, message }: Message<'PackageStatus'>): CloudparError {
  if (state === 'expired') {
    return new Gone(`package ${package_id}: ${message ?? 'it has expired, and the master has deleted it'}`);
  }
  const Kind = FAILURE_ERRORS[reason ?? ''] ?? PackageFailed;
  return new Kind(message ?? `the package has ${state}: ${reason ?? 'no reason given'}`, reason ?? undefined);
}
