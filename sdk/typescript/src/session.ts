import { randomBytes } from 'node:crypto';
import { Acknowledgements } from './acknowledgements.ts';
import { Awaiting, type Question } from './awaiting.ts';
import type { Connection } from './connection.ts';
import { Downloads, type Gate } from './downloads.ts';
import { CloudparError } from './errors.ts';
import { type Events, guarded } from './events.ts';
import { FleetWatch } from './fleet-watch.ts';
import type { Message } from './messages.ts';
import { type Order, type Origin, startMessage } from './orders.ts';
import { type News, Package, type TaskResult } from './package.ts';
import { isSealed, Seals, sealedPackageId } from './seals.ts';
import { SURROUNDINGS, type Surroundings } from './surroundings.ts';
import { upload } from './uploads.ts';

/** Closing waits for a master that does not answer no longer than this, at each of two steps. */
const CLOSE_S = 2;

/** What a task wrote to standard output and error. */
export interface Output {
  readonly packageId: string;
  readonly index: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Who gets a package's results. One that is also a gate says when there is room for large ones. */
export interface Receiver extends Partial<Gate> {
  /** The package is at the master. */
  started?(started: Package): void;
  /** Results that are whole, each task once. */
  receive(results: readonly TaskResult[]): void;
  /** Nothing more will come; why not everything came, if so. */
  end(failure: CloudparError | undefined): void;
}

/** Everything that is under way between this client and its master. */
export class Session {
  readonly id = randomBytes(8).toString('hex');
  readonly connection: Connection;
  readonly #surroundings: Surroundings;
  readonly #awaiting = new Awaiting(this.id);
  readonly #downloads: Downloads;
  readonly #receivers = new Map<Package, Receiver>();
  /** Of the receivers' packages, those that others have started. */
  readonly #attached = new Set<Package>();
  readonly #acknowledgements: Acknowledgements;
  readonly events: Events;
  readonly #onOutput: (output: Output) => void;
  readonly #starting = new Set<Promise<unknown>>();
  readonly #ending = new AbortController();
  readonly #fleetWatch: FleetWatch;
  #wake = new AbortController();
  #held: { readonly question: Question; readonly interruption: AbortController } | undefined;
  #asking = false;
  #who: Promise<Message<'HelloReply'>> | undefined;

  constructor(
    connection: Connection,
    events: Events,
    onOutput: (output: Output) => void = () => undefined,
    surroundings: Surroundings = SURROUNDINGS,
  ) {
    this.connection = connection;
    this.events = events;
    this.#acknowledgements = new Acknowledgements(connection);
    this.#fleetWatch = new FleetWatch(events, () => this.#awaiting.underWay, surroundings.now);
    this.#onOutput = onOutput;
    this.#surroundings = surroundings;
    this.#downloads = new Downloads(connection, this.id);
  }

  /** Aborted once the session begins to close. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** Ask who we are. */
  hello(): Promise<Message<'HelloReply'>> {
    const asked = this.connection.call('hello', {});
    this.#who = asked;
    asked.catch(() => {
      this.#who = this.#who === asked ? undefined : this.#who; // the next call asks again
    });
    return asked;
  }

  /** What a new package begins with. Only `hello` tells the key for seals, so no package starts before it. */
  async origin(): Promise<Origin> {
    const key = randomBytes(16).toString('hex');
    const { seal_key, account_id } = await (this.#who ?? this.hello());
    const sealing = seal_key != null && account_id != null;
    return { key, seals: sealing ? new Seals(seal_key, sealedPackageId(account_id, key)) : undefined };
  }

  /**
   * Start a package; its results go to the receiver. Without one they stay at the master.
   *
   * @throws CloudparError when the master refuses it, or does not answer.
   * @throws the signal's reason once it is aborted; what may have started by then is cancelled.
   */
  async start(order: Order, receiver: Receiver | undefined, signal: AbortSignal = this.ending): Promise<Package> {
    const { packed, origin } = order;
    signal.throwIfAborted();
    const data = packed.data.type === 'blob' ? await upload(this.connection, packed.data, signal) : packed.data;
    signal.throwIfAborted();
    this.#awaiting.startBegins();
    let started: Package | undefined;
    const call = this.connection.call('start_tasks', startMessage(order, data, this.id), { lastTry: signal });
    this.#starting.add(call);
    try {
      const { package_id } = await call;
      const made = new Package(package_id, packed.n, this.#surroundings.now(), origin.seals);
      if (signal.aborted) {
        this.#acknowledgements.add(package_id, true);
        throw signal.reason;
      }
      started = receiver === undefined ? undefined : made;
      this.#begin(made, receiver);
      return made;
    } catch (error) {
      if (signal.aborted && origin.seals !== undefined) {
        this.#acknowledgements.add(origin.seals.packageId, true); // a try whose answer was lost may have started it
      }
      throw error;
    } finally {
      this.#starting.delete(call);
      this.#awaiting.startEnds(started, this.#surroundings.now());
      this.#ask();
    }
  }

  #begin(begun: Package, receiver: Receiver | undefined): void {
    if (receiver !== undefined) {
      this.#receivers.set(begun, receiver);
      this.#fleetWatch.begin();
      receiver.started?.(begun);
    }
  }

  /** Ask for the results of a package that was started elsewhere: it goes on when this session ends. */
  async attach(packageId: string, tasks: number, receiver: Receiver): Promise<Package> {
    const { seal_key } = await (this.#who ?? this.hello());
    const seals = isSealed(packageId) && seal_key != null ? new Seals(seal_key, packageId) : undefined;
    const attached = new Package(packageId, tasks, this.#surroundings.now(), seals);
    this.ending.throwIfAborted();
    this.#attached.add(attached);
    this.#begin(attached, receiver);
    this.#awaiting.startBegins();
    this.#awaiting.startEnds(attached, this.#surroundings.now());
    this.#interrupt(attached);
    this.#ask();
    return attached;
  }

  /** Ask for no more results of a package for now, or for more again. */
  pause(paused: Package, isPaused: boolean): void {
    if (paused.paused !== isPaused) {
      paused.paused = isPaused;
      if (!isPaused) {
        this.#awaiting.resume(this.#surroundings.now());
        this.#interrupt(paused);
        this.#ask();
      }
    }
  }

  /** A question that the master holds open, and that is not about a package, is put again. */
  #interrupt(about: Package): void {
    if (this.#held !== undefined && !this.#held.question.asked.includes(about)) {
      this.#held.interruption.abort(new Error('the question is put again, with one more package'));
    }
  }

  /** A reader may have room for downloads that wait. */
  download(): void {
    this.#downloads.go();
  }

  /** Cancel some tasks of a package, or all; resolves once that is decided, with those that will have no value. */
  async cancel(packageId: string, ranges: [number, number][] | null = null): Promise<readonly [number, number][]> {
    const reply = await this.connection.call('cancel_tasks', { package_id: packageId, ranges });
    return reply.cancelled;
  }

  /** Hand on nothing more of a package, and let it go on. */
  forget(forgotten: Package): void {
    this.#awaiting.drop(forgotten);
    this.#downloads.drop(forgotten);
    this.#receivers.delete(forgotten);
    this.#attached.delete(forgotten);
  }

  /** Nothing of a package is wanted any more: what runs of it is cancelled, and its storage freed, soon. */
  read(done: Package): void {
    const isOurs = this.#receivers.has(done);
    this.forget(done);
    if (isOurs) {
      this.#acknowledgements.add(done.id, done.phase === 'running');
    }
  }

  /** Cancel and free whatever is under way, and end all requests. */
  async close(reason: CloudparError): Promise<void> {
    this.#ending.abort(reason);
    await this.#briefly(Promise.allSettled(this.#starting));
    for (const [each, receiver] of [...this.#receivers]) {
      if (!this.#attached.has(each)) {
        this.#acknowledgements.add(each.id, each.phase === 'running');
      }
      this.forget(each);
      if (each.phase === 'running') {
        each.lost(reason);
        receiver.end(reason);
      }
    }
    this.#wake.abort();
    this.#fleetWatch.end();
    await this.#briefly(this.#acknowledgements.send());
    this.connection.close();
  }

  /** Wait for something, but not for a master that is away. */
  async #briefly(something: Promise<unknown>): Promise<void> {
    const enough = new AbortController();
    const late = this.#surroundings.sleep(CLOSE_S, enough.signal);
    await Promise.race([something, late]).catch(() => undefined);
    enough.abort();
    await late.catch(() => undefined);
  }

  /** See that somebody asks for news as long as there is a package under way. */
  #ask(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
    if (!this.#asking) {
      this.#asking = true;
      void this.#askOn();
    }
  }

  async #askOn(): Promise<void> {
    for (;;) {
      const step = this.#awaiting.next(this.#surroundings.now());
      if (step === 'rest') {
        this.#asking = false; // with no other code between the two
        return;
      }
      if ('ask' in step) {
        await this.#put(step.ask);
      } else {
        await this.#surroundings.sleep(step.waitS, this.#wake.signal).catch(() => undefined);
      }
    }
  }

  /** Put one question to the master, and hand on the answer. */
  async #put(question: Question): Promise<void> {
    const { now } = this.#surroundings;
    const askedAt = now();
    const interruption = new AbortController();
    this.#held = { question, interruption };
    const options = { holdS: question.holdS, signal: interruption.signal };
    try {
      const reply = await this.connection.call('await_tasks', question.request, options);
      const found = this.#awaiting.answered(question, reply, now() - askedAt, now());
      this.#fleetWatch.answered(reply.fleet);
      for (const [awaited, news] of found) {
        this.#handOn(awaited, news);
      }
    } catch (error) {
      if (interruption.signal.aborted) {
        return; // what was answered meanwhile is answered again: the cursors still stand before it
      }
      const reason = error instanceof CloudparError ? error : new CloudparError(`an error in the pool: ${error}`);
      this.#awaiting.unanswered(question, reason);
      for (const awaited of question.asked) {
        this.#deliver(awaited, []);
      }
    } finally {
      this.#held = undefined;
    }
  }

  #handOn(awaited: Package, news: News): void {
    this.#deliver(awaited, news.results);
    this.events.emit({ type: 'progress', packageId: awaited.id, progress: awaited.progress });
    const receiver = this.#receivers.get(awaited);
    const arrived = (found: readonly TaskResult[] | CloudparError) => {
      if (found instanceof CloudparError) {
        awaited.lost(found);
        this.#downloads.drop(awaited);
        this.#deliver(awaited, []);
      } else {
        awaited.fetched(found.length);
        this.#deliver(awaited, found);
      }
    };
    this.#downloads.begin(awaited, news, arrived, isGate(receiver) ? receiver : undefined);
  }

  #deliver(awaited: Package, results: readonly TaskResult[]): void {
    const receiver = this.#receivers.get(awaited);
    for (const { index, stdout, stderr } of results) {
      if (stdout || stderr) {
        const output = { packageId: awaited.id, index, stdout: stdout ?? '', stderr: stderr ?? '' };
        guarded('onOutput', () => this.#onOutput(output));
      }
    }
    if (results.length > 0) {
      receiver?.receive(results);
    }
    if (awaited.phase === 'ended') {
      receiver?.end(awaited.failure);
    }
  }
}

function isGate(receiver: Receiver | undefined): receiver is Receiver & Gate {
  return receiver?.admits !== undefined && receiver.downloaded !== undefined;
}
