import type { Connection } from './connection.ts';
import { Downloads, type Gate } from './downloads.ts';
import { CloudparError } from './errors.ts';
import { Breaks } from './event-loop.ts';
import { type Events, guarded } from './events.ts';
import type { News, Package, TaskResult } from './package.ts';

/** Results of one answer that a receiver gets at once: settling them takes a few milliseconds. */
const SLICE_RESULTS = 500;

/** What a task wrote to standard output and error. */
export interface Output {
  readonly packageId: string;
  readonly index: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Receives a package's results. A receiver that is also a gate decides when large results are downloaded. */
export interface Receiver extends Partial<Gate> {
  /** The package is at the master. */
  started?(started: Package): void;
  /** Results that are whole, each task once. */
  receive(results: readonly TaskResult[]): void;
  /** Tasks without a result will never have one; payloads of others may still come. */
  fail?(failure: CloudparError): void;
  /** Nothing more will come. `failure` says why, if results are missing. */
  end(failure: CloudparError | undefined): void;
}

/** Hands on what the master answers: results to their receivers, output and progress to the program. */
export class Deliveries {
  readonly #events: Events;
  readonly #onOutput: (output: Output) => void;
  readonly #downloads: Downloads;
  readonly #receivers = new Map<Package, Receiver>();
  /** Packages of which results of an answer are still to be handed on. */
  readonly #handingOn = new Set<Package>();

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

  /** Hand on nothing more of a package. */
  forget(forgotten: Package): void {
    this.#downloads.drop(forgotten);
    this.#receivers.delete(forgotten);
  }

  /** No more news of a package will come: end its receiver with the reason, and forget the package. */
  lose(lost: Package, reason: CloudparError): void {
    const receiver = this.#receivers.get(lost);
    this.forget(lost);
    if (lost.phase === 'running' || this.#handingOn.has(lost)) {
      lost.lost(reason);
      receiver?.end(reason);
    }
  }

  /** A reader may have room for downloads that wait. */
  download(): void {
    this.#downloads.go();
  }

  /** Hand on what an answer brought of a package, and fetch what it could only name. */
  async handOn(awaited: Package, news: News): Promise<void> {
    const breaks = new Breaks();
    this.#handingOn.add(awaited);
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
    this.#handingOn.delete(awaited);
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

  /** Hand on results that are whole, and the end of the package. */
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
