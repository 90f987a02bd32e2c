import { setMaxListeners } from 'node:events';
import { anyOf, onAbort } from './abort-signals.ts';
import type { CallSite } from './call-site.ts';
import { CloudparError, SerializationError, TaskCancelled, TaskError, TooLarge } from './errors.ts';
import type { CallStyle } from './messages.ts';
import type { PackageOptions } from './options.ts';
import { copied, located, settle } from './outcomes.ts';
import type { Package, TaskResult } from './package.ts';
import { pack } from './packing.ts';
import { taskCode } from './reference.ts';
import type { Session } from './session.ts';
import { Source } from './source.ts';
import type { Inputs } from './task-input.ts';

/** One submitted task. */
export interface Submission {
  readonly reference: string;
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly options: PackageOptions;
  readonly signal: AbortSignal | undefined;
  readonly site: CallSite;
}

interface Waiting extends Submission {
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

const CALL: CallStyle = 'args_kwargs';

/**
 * Submitted tasks. Those of the same function and options that are submitted in one turn of the event loop travel in
 * one package.
 */
export class SubmitBatcher {
  readonly #session: Session;
  #waiting = new Map<string, Waiting[]>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Starts a task soon; resolves with its value. */
  submit(submission: Submission): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) {
        setImmediate(() => this.#startAll());
      }
      const { reference, options } = submission;
      const kind = JSON.stringify([reference, options]);
      const batch = this.#waiting.get(kind) ?? [];
      this.#waiting.set(kind, batch);
      batch.push({ ...submission, resolve, reject });
    });
  }

  #startAll(): void {
    const batches = [...this.#waiting.values()];
    this.#waiting = new Map();
    for (const batch of batches) {
      void new Batch(this.#session, batch).start();
    }
  }
}

/** The tasks of one package. */
class Batch {
  readonly #session: Session;
  readonly #tasks: readonly Waiting[];
  readonly #inputs: Inputs;
  readonly #open: Map<number, Waiting>;
  readonly #over = new AbortController();
  /** Aborted when all callers have aborted. */
  readonly #abandoned = new AbortController();
  /** Tasks whose callers aborted before there was a package. */
  readonly #unwanted: number[] = [];
  #started: Package | undefined;

  constructor(session: Session, batch: readonly Waiting[]) {
    this.#session = session;
    this.#tasks = batch.filter(isWanted);
    this.#open = new Map(this.#tasks.entries());
    this.#inputs = { values: this.#tasks.map(({ args, kwargs }) => [args, kwargs]), call: CALL };
    setMaxListeners(0, this.#over.signal); // one listener for each task that has a signal: Node would warn of a leak
    for (const [index, { signal }] of this.#open) {
      if (signal !== undefined) {
        onAbort(signal, () => void this.#cancel(index, signal.reason), this.#over.signal);
      }
    }
  }

  async start(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      if (ofSome(error) && this.#tasks.length > 1) {
        await this.#startHalves();
      } else {
        this.#end(error);
      }
    }
  }

  async #start(): Promise<void> {
    const first = this.#tasks[0];
    if (first === undefined) {
      return;
    }
    const wanted = anyOf(this.#abandoned.signal, this.#session.ending);
    try {
      wanted.signal.throwIfAborted();
      const packageKey = await this.#session.newPackageKey();
      const packed = await pack(new Source(this.#inputs.values), packageKey.seals, wanted.signal);
      await this.#session.start(
        { ...first.options, code: taskCode(first.reference), packed, call: CALL, packageKey },
        {
          started: (started) => {
            this.#started = started;
          },
          receive: (results) => this.#receive(results),
          end: (failure) => this.#end(failure),
        },
        wanted.signal,
      );
    } finally {
      wanted.release();
    }
    await this.#stop(this.#unwanted);
  }

  /**
   * Starts the halves one after the other: the program submitted single tasks, so only some of them may be at fault.
   */
  async #startHalves(): Promise<void> {
    this.#over.abort();
    const all = [...this.#open.values()];
    const middle = all.length >> 1;
    const halves = [all.slice(0, middle), all.slice(middle)].map((half) => new Batch(this.#session, half));
    for (const half of halves) {
      await half.start();
    }
  }

  #receive(results: readonly TaskResult[]): void {
    for (const result of results) {
      const waiting = this.#open.get(result.index);
      this.#open.delete(result.index);
      const { id: packageId, seals } = this.#started as Package;
      const settled = settle(result, { packageId, base: 0, seals, site: waiting?.site, inputs: this.#inputs });
      if (settled.status === 'fulfilled') {
        waiting?.resolve(settled.value);
      } else {
        waiting?.reject(settled.reason);
      }
    }
  }

  #end(failure: unknown): void {
    const reason = failure ?? new CloudparError("the package ended without this task's result");
    for (const [index, waiting] of this.#open) {
      waiting.reject(reason instanceof CloudparError ? this.#errorOf(reason, index, waiting.site) : reason);
    }
    this.#open.clear();
    this.#over.abort();
    if (this.#started !== undefined) {
      this.#session.release(this.#started);
    }
  }

  /** Copies a failure for one caller: with its place in the program and, once there is a package, its task. */
  #errorOf(failure: CloudparError, index: number, site: CallSite): CloudparError {
    const error = copied(failure);
    if (this.#started === undefined) {
      site.mark(error);
      return error;
    }
    const { id: packageId, seals } = this.#started;
    const context = { packageId, base: 0, seals, site, inputs: this.#inputs };
    return located(error, { index, input: null }, context, !(failure instanceof TaskError));
  }

  /** Rejects a task whose caller has aborted, and cancels it at the master. */
  async #cancel(index: number, reason: unknown): Promise<void> {
    this.#open.get(index)?.reject(reason ?? new TaskCancelled('the task was cancelled'));
    if (this.#open.delete(index)) {
      this.#unwanted.push(index);
      if (this.#open.size === 0 && this.#started === undefined) {
        this.#abandoned.abort(reason);
      }
      await this.#stop([index]);
    }
  }

  /** Cancels tasks at the master. If that fails, they run to their end. */
  async #stop(indices: readonly number[]): Promise<void> {
    if (this.#started !== undefined && indices.length > 0) {
      const ranges = indices.map((index): [number, number] => [index, index + 1]);
      await this.#session.cancel(this.#started.id, ranges).catch(() => undefined);
    }
  }
}

/** Whether the task's caller still waits. If the caller has aborted, rejects the task with the signal's reason. */
function isWanted({ signal, reject }: Waiting): boolean {
  if (signal?.aborted) {
    reject(signal.reason);
  }
  return !signal?.aborted;
}

/** Whether single tasks may have caused the error. */
function ofSome(error: unknown): boolean {
  return error instanceof TooLarge || error instanceof SerializationError;
}
