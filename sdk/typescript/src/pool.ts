import { configure, type Whereabouts } from './configuration.ts';
import { type Address, Connection } from './connection.ts';
import { CloudparError } from './errors.ts';
import { MapResults } from './map-results.ts';
import type { CallStyle, Reply } from './messages.ts';
import { pack, type Values } from './packing.ts';
import { taskCode } from './reference.ts';
import { type Output, Session } from './session.ts';
import { Submissions } from './submissions.ts';
import { SURROUNDINGS, type Surroundings } from './surroundings.ts';

/** How a pool finds its master, and how long it waits for it. */
export interface PoolOptions extends Whereabouts {
  /** How long to wait for a master that has gone away, in seconds; 300 by default. */
  readonly patienceS?: number | undefined;
  /** Called with what a task wrote to standard output and error; by default that is dropped. */
  readonly onOutput?: ((output: Output) => void) | undefined;
}

/** What may be set for the tasks of one call. */
export interface TaskOptions {
  /** The longest that one of these tasks may run, in seconds; more than the operator's limit is cut to it. */
  readonly taskTimeoutS?: number | undefined;
  /** A task that raises is tried again so often, at once; the time of all attempts is charged. 0 by default. */
  readonly retries?: number | undefined;
  /** Only after these exceptions and what is derived from them: "ValueError", "package.module.Class". */
  readonly retryOn?: readonly string[] | undefined;
  /** Aborting it cancels the tasks; whoever waits for them gets its reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface MapOptions extends TaskOptions {
  /** Tasks that a worker takes at a time; by default the master decides by the durations that it measures. */
  readonly chunksize?: number | undefined;
  /** How the function is called with a value v: "value" f(v), "args" f(*v), "args_kwargs" f(*v[0], **v[1]). */
  readonly call?: CallStyle | undefined;
}

export interface SubmitOptions extends TaskOptions {
  /** Keyword arguments. */
  readonly kwargs?: Readonly<Record<string, unknown>> | undefined;
}

/** Runs functions, by their names, on the workers of a master. */
export class Pool implements AsyncDisposable {
  readonly #session: Session;
  readonly #submissions: Submissions;

  /** See `Pool.open`, which also finds the master. */
  constructor(
    address: Address,
    options: Pick<PoolOptions, 'patienceS' | 'onOutput'> = {},
    surroundings: Surroundings = SURROUNDINGS,
  ) {
    const connection = new Connection(address, options.patienceS, surroundings);
    this.#session = new Session(connection, options.onOutput, surroundings);
    this.#submissions = new Submissions(this.#session);
  }

  /**
   * Find the master, and ask it whether it knows us.
   *
   * @throws ConfigurationError when endpoint or token is not known.
   * @throws MasterUnreachable when no master answers (within 10 s).
   * @throws InvalidToken when the master does not know the token.
   */
  static async open(options: PoolOptions = {}): Promise<Pool> {
    const pool = new Pool(await configure(options), options);
    try {
      await pool.hello();
    } catch (error) {
      await pool.close();
      throw error;
    }
    return pool;
  }

  /** The master's URL. */
  get endpoint(): string {
    return this.#session.connection.endpoint;
  }

  /** Who we are for the master, and what compute time there is. */
  async hello(): Promise<Omit<Reply<'hello'>, 'seal_key'>> {
    // Whoever logs what is public here must not log the key for seals.
    const { seal_key: _, ...who } = await this.#session.hello();
    return who;
  }

  /**
   * Run a function on each value, as one package, which starts at once.
   *
   * @param reference "package.module:function", which the workers import.
   * @param values null, booleans, numbers, bigints of at most 64 bits, strings, Uint8Arrays, Dates, and arrays and
   *   plain objects of these. A `range` costs nothing to send.
   * @returns The results in the order of the values, each as soon as it and those before it are there. Of what type
   *   they are is only said here, not checked.
   */
  map<T = unknown>(reference: string, values: Values, options: MapOptions = {}): MapResults<T> {
    return this.#map(reference, values, options, true);
  }

  /** Like `map`, but the results come in the order in which tasks end; `settled()` tells their numbers. */
  mapUnordered<T = unknown>(reference: string, values: Values, options: MapOptions = {}): MapResults<T> {
    return this.#map(reference, values, options, false);
  }

  #map<T>(reference: string, values: Values, options: MapOptions, ordered: boolean): MapResults<T> {
    const { call = 'value', chunksize, taskTimeoutS, retries, retryOn, signal } = options;
    const order = { call, chunksize, taskTimeoutS, retries, retryOn };
    const session = this.#session;
    return new MapResults<T>(
      session,
      async (receiver) => {
        const code = await taskCode(reference);
        const origin = session.origin();
        const packed = await pack(values, origin.seals);
        return packed.n === 0 ? undefined : session.start({ code, packed, ...order, origin }, receiver);
      },
      ordered,
      signal,
    );
  }

  /**
   * Run a function once. Calls in a row travel together.
   *
   * @param reference "package.module:function", which the workers import.
   * @param args Its arguments; see `map` for what they may hold.
   */
  submit<T = unknown>(reference: string, args: readonly unknown[] = [], options: SubmitOptions = {}): Promise<T> {
    const { kwargs = {}, taskTimeoutS, retries, retryOn, signal } = options;
    return this.#submissions.submit({ reference, args, kwargs, taskTimeoutS, retries, retryOn, signal }) as Promise<T>;
  }

  /** Cancel what is under way, free what it has at the master, and end all requests. */
  async close(): Promise<void> {
    await this.#session.close(new CloudparError('the pool was closed before this had ended'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
