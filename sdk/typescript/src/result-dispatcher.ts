import type { Connection } from './connection.ts';
import { Downloads, type Gate } from './downloads.ts';
import { CloudparError } from './errors.ts';
import { Breaks } from './event-loop.ts';
import { type Events, guarded } from './events.ts';
import type { News, Package, TaskResult } from './package.ts';

/** How many results of one answer a receiver gets at a time. Reading this many results takes a few milliseconds. */
const SLICE_RESULTS = 500;

/** What a task wrote to standard output and error. */
export interface Output {
  readonly packageId: string;
  readonly index: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Receives the results of a package. A receiver that is also a gate decides when large results are downloaded. */
export interface Receiver extends Partial<Gate> {
  /** Is called when the master has the package. */
  started?(started: Package): void;
  /** Takes complete results. Each task has only one result. */
  receive(results: readonly TaskResult[]): void;
  /** Is called when tasks without a result will never have a result. Payloads of other tasks may still come. */
  fail?(failure: CloudparError): void;
  /** Is called when nothing more will come. If results are missing, `failure` is the reason. */
  end(failure: CloudparError | undefined): void;
}

/** Passes on the master's answers: results to their receivers, output and progress to the program. */
export class ResultDispatcher {
  readonly #events: Events;
  readonly #onOutput: (output: Output) => void;
  readonly #downloads: Downloads;
  readonly #receivers = new Map<Package, Receiver>();
  /** Packages for which results of an answer must still be passed on. */
  readonly #dispatching = new Set<Package>();

  constructor(connection: Connection, session: string, events: Events, onOutput: (output: Output) => void) {
    this.#events = events;
    this.#onOutput = onOutput;
    this.#downloads = new Downloads(connection, session);
  }

  /** The packages that have a receiver. */
  get packages(): readonly Package[] {
    return [...this.#receivers.keys()];
  }

  has(wanted: Package): boolean {
    return this.#receivers.has(wanted);
  }

  begin(begun: Package, receiver: Receiver): void {
    this.#receivers.set(begun, receiver);
    receiver.started?.(begun);
  }

  /** Passes on nothing more of a package. */
  forget(forgotten: Package): void {
    this.#downloads.drop(forgotten);
    this.#receivers.delete(forgotten);
  }

  /** Ends the receiver of a package with a reason, because no more news will come, and forgets the package. */
  lose(lost: Package, reason: CloudparError): void {
    const receiver = this.#receivers.get(lost);
    this.forget(lost);
    if (lost.phase === 'running' || this.#dispatching.has(lost)) {
      lost.lost(reason);
      receiver?.end(reason);
    }
  }

  /** Starts the waiting downloads for which their readers have room. */
  download(): void {
    this.#downloads.go();
  }

  /** Passes on the news of a package, and downloads the results that an answer only names. */
  async dispatch(awaited: Package, news: News): Promise<void> {
    const breaks = new Breaks();
    this.#dispatching.add(awaited);
    let slice: TaskResult[] = [];
    for (const result of news.results) {
      slice.push(result);
      if (slice.length === SLICE_RESULTS) {
        this.#receive(awaited, slice);
        slice = [];
        if (breaks.isOverdue()) {
          await breaks.take();
        }
      }
    }
    this.#receive(awaited, slice);
    this.#dispatching.delete(awaited);
    this.deliver(awaited, []);
    this.#events.emit({ type: 'progress', packageId: awaited.id, progress: awaited.progress });
    const receiver = this.#receivers.get(awaited);
    const arrived = (found: readonly TaskResult[] | CloudparError) => {
      if (found instanceof CloudparError) {
        awaited.lost(found);
        this.#downloads.drop(awaited);
        this.deliver(awaited, []);
      } else {
        awaited.fetched(found.length);
        this.deliver(awaited, found);
      }
    };
    this.#downloads.begin(awaited, news, arrived, isGate(receiver) ? receiver : undefined);
  }

  /** Passes on complete results, and the end of the package. */
  deliver(awaited: Package, results: readonly TaskResult[]): void {
    this.#receive(awaited, results);
    const receiver = this.#receivers.get(awaited);
    if (awaited.phase === 'ended') {
      receiver?.end(awaited.failure);
    } else if (awaited.firstLost !== undefined && awaited.failure !== undefined) {
      receiver?.fail?.(awaited.failure);
    }
  }

  #receive(awaited: Package, results: readonly TaskResult[]): void {
    for (const { index, stdout, stderr } of results) {
      if (stdout || stderr) {
        const output = { packageId: awaited.id, index, stdout: stdout ?? '', stderr: stderr ?? '' };
        guarded('onOutput', () => this.#onOutput(output));
      }
    }
    if (results.length > 0) {
      this.#receivers.get(awaited)?.receive(results);
    }
  }
}

function isGate(receiver: Receiver | undefined): receiver is Receiver & Gate {
  return receiver?.admits !== undefined && receiver.downloaded !== undefined;
}
