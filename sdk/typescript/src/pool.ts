import { anyOf } from './abort-signals.ts';
import { Attachment, attach } from './attachment.ts';
import { CallSite } from './call-site.ts';
import { closedMeanwhile } from './closed.ts';
import { configure, type Whereabouts } from './configuration.ts';
import { type Address, Connection } from './connection.ts';
import { Forbidden } from './errors.ts';
import { Events, type PoolEvent } from './events.ts';
import type { Fetch } from './http.ts';
import { MapResults } from './map-results.ts';
import type { Reply } from './messages.ts';
import { checkOptions, type MapOptions, type StartOptions, type SubmitOptions } from './options.ts';
import type { Package } from './package.ts';
import { pack } from './packing.ts';
import { PLATFORM, type Platform } from './platform.ts';
import { Range } from './range.ts';
import { checkReference, taskCode } from './reference.ts';
import type { Output, Receiver } from './result-dispatcher.ts';
import { Session } from './session.ts';
import { checkValues, Source, type Values } from './source.ts';
import { SubmitBatcher } from './submit-batcher.ts';
import { inputsOf } from './task-input.ts';

/** How a pool finds its master, how long it waits for the master, and what happens with output and events. */
export interface PoolOptions extends Whereabouts {
  /** How long to wait for a master that has stopped answering, in seconds; 300 by default. */
  readonly patienceS?: number | undefined;
  /** Is called with a task's standard output and error. By default they are dropped. */
  readonly onOutput?: ((output: Output) => void) | undefined;
  /**
   * Is called with each event of the pool. By default, each event other than progress is a warning of the process. The
   * channel "cloudpar:event" of node:diagnostics_channel gets the events of all pools.
   */
  readonly onEvent?: ((event: PoolEvent) => void) | undefined;
  /** Replaces the global fetch in every request, for example to use a proxy or another certificate authority. */
  readonly fetch?: Fetch | undefined;
}

/** Runs functions by their names on the workers of a master. `Pool.open` makes a pool. */
export class Pool {
  readonly #session: Session;
  readonly #batcher: SubmitBatcher;

  private constructor(session: Session) {
    if (!(session instanceof Session)) {
      throw new TypeError('a pool is opened by `await Pool.open({ endpoint, token })`, which asks the master first');
    }
    this.#session = session;
    this.#batcher = new SubmitBatcher(session);
  }

  /**
   * Finds the master, and connects to it with the account's token.
   *
   * @throws ConfigurationError when endpoint or token is missing or not valid, or the stack, the secret or the profile
   *   file cannot be read.
   * @throws MasterUnreachable when no master answers (within 10 s).
   * @throws InvalidToken when the master does not know the token.
   * @throws Forbidden when the token is not the token of an account.
   * @throws RequestError when the master refuses the first request for another reason.
   * @throws TypeError when an option is misspelt or its value is not valid.
   */
  static async open(options: PoolOptions = {}): Promise<Pool> {
    checkOptions('Pool.open', options);
    const pool = Pool.at(await configure(options), options);
    try {
      const { role } = await pool.hello();
      if (role !== 'user') {
        throw new Forbidden(
          `this is the ${role} token of ${pool.endpoint}, and a pool needs an account's token: \`cloudpar up\` shows it ` +
            'as CLOUDPAR_TOKEN, and elsewhere the operator makes one by `cloudpar account create NAME`',
        );
      }
    } catch (error) {
      await pool.close();
      throw error;
    }
    return pool;
  }

  /**
   * Makes a pool for an address, without a request. The pool sends its first request before it starts its first
   * package.
   *
   * @internal
   */
  static at(address: Address, options: Omit<PoolOptions, keyof Whereabouts> = {}, platform: Platform = PLATFORM): Pool {
    const { patienceS, fetch, onEvent, onOutput } = options;
    const events = new Events(onEvent);
    const connection = new Connection(address, { patienceS, fetch }, events, platform);
    return new Pool(new Session(connection, events, onOutput, platform));
  }

  /** The master's URL. */
  get endpoint(): string {
    return this.#session.connection.endpoint;
  }

  /** Returns the role of the token, the account, and its compute time. */
  async hello(): Promise<Omit<Reply<'hello'>, 'seal_key'>> {
    // Programs may log this reply, and must not log the key for seals.
    const { seal_key: _, ...who } = await this.#session.hello();
    return who;
  }

  /**
   * Runs a function on each value. The tasks are in one package, which starts when all values have been collected; with
   * `buffersize`, they are in several packages, which start while results are read.
   *
   * @param reference "package.module:function", which the workers import.
   * @param values null, booleans, numbers, bigints of at most 64 bits, strings, ArrayBuffers, typed arrays, Dates, and
   *   arrays and plain objects of these. Without `buffersize`, a `range` is sent as two numbers.
   * @returns The results in the order of the values. Each result is given as soon as it and all results before it have
   *   come. Their type T is not checked.
   * @throws TypeError when the reference does not have this form, the values cannot be iterated or are a string, or an
   *   option is misspelt or its value is not valid.
   * @throws CloudparError when the pool is closed.
   */
  map<T = unknown>(reference: string, values: Values, options: MapOptions = {}): MapResults<T> {
    checkOptions('map', options);
    return this.#map(reference, values, options, true, new CallSite(this.map));
  }

  /**
   * Does the same as `map`, but gives the results in the order in which they arrive; `settled()` gives the task
   * numbers.
   */
  mapUnordered<T = unknown>(reference: string, values: Values, options: MapOptions = {}): MapResults<T> {
    checkOptions('mapUnordered', options);
    return this.#map(reference, values, options, false, new CallSite(this.mapUnordered));
  }

  #map<T>(reference: string, values: Values, options: MapOptions, ordered: boolean, site: CallSite): MapResults<T> {
    const { buffersize, signal } = options;
    this.#session.checkOpen();
    checkReference(reference);
    checkValues(values);
    const source = values instanceof Range && buffersize === undefined ? undefined : new Source(values);
    const startNext = (limit: number, receiver: Receiver, ends: AbortSignal) =>
      this.#start(reference, source ?? (values as Range), options, receiver, ends, limit);
    const tasks =
      buffersize === undefined && (values instanceof Range || Array.isArray(values)) ? values.length : undefined;
    const callInfo = { site, tasks, inputs: inputsOf(values, options.call ?? 'value') };
    const plan = { startNext, source, ordered, buffersize, signal: signal as AbortSignal | undefined, callInfo };
    return new MapResults<T>(this.#session, plan);
  }

  async #start(
    reference: string,
    values: Source | Range,
    options: StartOptions,
    receiver: Receiver | undefined,
    signal: AbortSignal,
    limit?: number,
  ): Promise<Package | undefined> {
    const { call = 'value' } = options;
    signal.throwIfAborted();
    const packageKey = await this.#session.newPackageKey();
    const packed = await pack(values, packageKey.seals, signal, limit);
    const order = { ...options, code: taskCode(reference), packed, call, packageKey };
    return packed.n === 0 ? undefined : this.#session.start(order, receiver, signal);
  }

  /**
   * Starts tasks whose results are read later, or elsewhere: they continue when the pool is closed or this process
   * ends.
   *
   * @returns The package, once the master has it. Its `packageId` can be passed to `attach`.
   * @throws TypeError as `map` does, and when there is no value.
   * @throws CloudparError when the pool is closed, a value cannot be sent, or the master refuses or does not answer.
   */
  async start<T = unknown>(reference: string, values: Values, options: StartOptions = {}): Promise<Attachment<T>> {
    const site = new CallSite(this.start);
    checkOptions('start', options);
    this.#session.checkOpen();
    checkReference(reference);
    checkValues(values);
    const ends = anyOf(options.signal as AbortSignal | undefined, this.#session.ending);
    try {
      const source = values instanceof Range ? values : new Source(values);
      const started = await this.#start(reference, source, options, undefined, ends.signal);
      if (started === undefined) {
        throw new TypeError('a package has at least one task: give start() at least one value');
      }
      return new Attachment<T>(this.#session, started.id, started.progress, site);
    } finally {
      ends.release();
    }
  }

  /**
   * Attaches to a package that was started earlier, here or elsewhere: by `start`, by `detach` of a map, or in Python
   * with `cloudpar.reference`.
   *
   * @param packageId The id of a package of this account, or its first characters.
   * @throws NotFound when there is no such package, or several start with these characters; Gone when it was deleted.
   * @throws SerializationError when its results are pickles, which only Python reads.
   * @throws CloudparError when the pool is closed, or the master refuses or does not answer.
   */
  async attach<T = unknown>(packageId: string): Promise<Attachment<T>> {
    this.#session.checkOpen();
    return attach<T>(this.#session, packageId, new CallSite(this.attach));
  }

  /**
   * Runs a function once; resolves with the function's value, or rejects with the task's error. Calls of one function
   * with equal options are sent together if they are made in the same turn of the event loop.
   *
   * @param reference "package.module:function", which the workers import.
   * @param args The arguments. They may contain the same types as the values of `map`.
   */
  async submit<T = unknown>(reference: string, args: readonly unknown[] = [], options: SubmitOptions = {}): Promise<T> {
    const site = new CallSite(this.submit);
    checkOptions('submit', options);
    this.#session.checkOpen();
    checkReference(reference);
    if (!Array.isArray(args)) {
      throw new TypeError(`the arguments of submit must be an array, such as ['x'] for f('x')`);
    }
    const { kwargs = {}, signal: aborting, ...chosen } = options;
    const signal = aborting as AbortSignal | undefined;
    const submission = { reference, args, kwargs, options: chosen, signal, site };
    return this.#batcher.submit(submission) as Promise<T>;
  }

  /**
   * Cancels the running tasks of `map`, `mapUnordered` and `submit`, deletes their results at the master, and ends all
   * requests. Detached maps and packages of `start` and `attach` continue.
   */
  async close(): Promise<void> {
    await this.#session.close(closedMeanwhile());
  }

  /** The same as `close`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
