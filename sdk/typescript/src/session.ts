import { randomBytes } from 'node:crypto';
import { Awaiting, type Question } from './awaiting.ts';
import type { Connection } from './connection.ts';
import { Downloads } from './downloads.ts';
import { CloudparError } from './errors.ts';
import { BULK_ITEMS } from './limits.ts';
import type { CallStyle, Draft, Message } from './messages.ts';
import { type News, Package, type TaskResult } from './package.ts';
import type { Packed } from './packing.ts';
import { Seals, sealedPackageId } from './seals.ts';
import { SURROUNDINGS, type Surroundings } from './surroundings.ts';
import { upload } from './uploads.ts';

/** Acknowledgements wait this long for company. */
const ACKNOWLEDGE_MS = 1000;

/** Closing waits for a master that does not answer no longer than this, at each of two steps. */
const CLOSE_S = 2;

/** What to start: code, data, and how the one is called with the other. */
export interface Order {
  readonly code: Draft<'TaskCode'>;
  readonly packed: Packed;
  readonly call: CallStyle;
  readonly chunksize?: number | undefined;
  readonly taskTimeoutS?: number | undefined;
  readonly retries?: number | undefined;
  readonly retryOn?: readonly string[] | undefined;
  readonly origin?: Origin;
}

/** What a package begins with: its idempotency key and, at a master that knows seals, its seals. */
export interface Origin {
  readonly key: string;
  readonly seals: Seals | undefined;
}

/** What a task wrote to standard output and error. */
export interface Output {
  readonly packageId: string;
  readonly index: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Whoever wants a package's results. */
export interface Receiver {
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
  #read: string[] = [];
  #acknowledgeTimer: NodeJS.Timeout | undefined;
  readonly #onOutput: (output: Output) => void;
  readonly #starting = new Set<Promise<unknown>>();
  #wake = new AbortController();
  #asking = false;
  #who: Message<'HelloReply'> | undefined;

  constructor(
    connection: Connection,
    onOutput: (output: Output) => void = () => undefined,
    surroundings: Surroundings = SURROUNDINGS,
  ) {
    this.connection = connection;
    this.#onOutput = onOutput;
    this.#surroundings = surroundings;
    this.#downloads = new Downloads(connection, this.id);
  }

  /** Ask who we are. */
  async hello(): Promise<Message<'HelloReply'>> {
    this.#who = await this.connection.call('hello', {});
    return this.#who;
  }

  /** What a new package begins with. Only who has asked `hello` knows the key for seals. */
  origin(): Origin {
    const key = randomBytes(16).toString('hex');
    const { seal_key, account_id } = this.#who ?? {};
    const sealing = seal_key != null && account_id != null;
    return { key, seals: sealing ? new Seals(seal_key, sealedPackageId(account_id, key)) : undefined };
  }

  /**
   * Start a package; its results go to the receiver.
   *
   * @throws CloudparError when the master refuses it, or does not answer.
   */
  async start(order: Order, receiver: Receiver): Promise<Package> {
    const { code, packed } = order;
    const { key, seals } = order.origin ?? { key: randomBytes(16).toString('hex'), seals: undefined };
    const data = packed.data.type === 'blob' ? await upload(this.connection, packed.data) : packed.data;
    const message = {
      idempotency_key: key,
      session: this.id,
      name: code.reference ?? '',
      n: packed.n,
      code,
      data,
      call: order.call,
      codec: 'msgpack',
      python: '',
      chunksize: order.chunksize ?? null,
      task_timeout_s: order.taskTimeoutS ?? null,
      retries: order.retries ?? 0,
      retry_on: [...(order.retryOn ?? [])],
      seal: seals === undefined ? null : sealOf(seals, order),
    } satisfies Draft<'StartTasks'>;
    this.#awaiting.startBegins();
    let started: Package | undefined;
    const call = this.connection.call('start_tasks', message);
    this.#starting.add(call);
    try {
      const { package_id } = await call;
      started = new Package(package_id, packed.n, this.#surroundings.now(), seals);
      this.#receivers.set(started, receiver);
      return started;
    } finally {
      this.#starting.delete(call);
      this.#awaiting.startEnds(started, this.#surroundings.now());
      this.#ask();
    }
  }

  /** Cancel some tasks of a package, or all; resolves once that is decided, with those that will have no value. */
  async cancel(cancelled: Package, ranges: [number, number][] | null = null): Promise<readonly [number, number][]> {
    const reply = await this.connection.call('cancel_tasks', { package_id: cancelled.id, ranges });
    return reply.cancelled;
  }

  /** Nothing of a package is wanted any more: what runs of it is cancelled, and its storage freed, soon. */
  read(done: Package): void {
    this.#awaiting.drop(done);
    if (!this.#receivers.delete(done)) {
      return;
    }
    this.#read.push(done.id);
    if (done.phase === 'running' || this.#read.length >= BULK_ITEMS) {
      void this.acknowledge().catch(() => undefined); // it is deleted some days later anyway
    } else {
      this.#acknowledgeTimer ??= setTimeout(() => void this.acknowledge().catch(() => undefined), ACKNOWLEDGE_MS);
      this.#acknowledgeTimer.unref();
    }
  }

  /** Tell the master what has been read. */
  async acknowledge(): Promise<void> {
    clearTimeout(this.#acknowledgeTimer);
    this.#acknowledgeTimer = undefined;
    while (this.#read.length > 0) {
      await this.connection.call('acknowledge', { package_ids: this.#read.splice(0, BULK_ITEMS) });
    }
  }

  /** Cancel and free whatever is under way, and end all requests. */
  async close(reason: CloudparError): Promise<void> {
    await this.#briefly(Promise.allSettled(this.#starting));
    for (const [each, receiver] of [...this.#receivers]) {
      this.#read.push(each.id);
      this.#awaiting.drop(each);
      this.#receivers.delete(each);
      if (each.phase === 'running') {
        each.lost(reason);
        receiver.end(reason);
      }
    }
    this.#wake.abort();
    await this.#briefly(this.acknowledge());
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
    try {
      const reply = await this.connection.call('await_tasks', question.request, question.holdS);
      const found = this.#awaiting.answered(question, reply, now() - askedAt, now());
      for (const [awaited, news] of found) {
        this.#handOn(awaited, news);
      }
    } catch (error) {
      const reason = error instanceof CloudparError ? error : new CloudparError(`an error in the pool: ${error}`);
      this.#awaiting.unanswered(question, reason);
      for (const awaited of question.asked) {
        this.#deliver(awaited, []);
      }
    }
  }

  #handOn(awaited: Package, news: News): void {
    this.#deliver(awaited, news.results);
    this.#downloads.begin(awaited, news, (arrived) => {
      if (arrived instanceof CloudparError) {
        awaited.lost(arrived);
        this.#deliver(awaited, []);
      } else {
        awaited.fetched(arrived.length);
        this.#deliver(awaited, arrived);
      }
    });
  }

  #deliver(awaited: Package, arrived: readonly TaskResult[]): void {
    const results = arrived.map((result) => awaited.seals?.verified(result) ?? result);
    const receiver = this.#receivers.get(awaited);
    for (const { index, stdout, stderr } of results) {
      if (stdout || stderr) {
        this.#onOutput({ packageId: awaited.id, index, stdout: stdout ?? '', stderr: stderr ?? '' });
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

function sealOf(seals: Seals, { code, packed: { n, data }, call }: Order): Uint8Array {
  const range = data.type === 'range' ? ([data.start, data.step] as const) : undefined;
  const { hash, reference = null } = code;
  return seals.code({ hash, reference }, { call, codec: 'msgpack', python: '', tasks: n, range });
}
