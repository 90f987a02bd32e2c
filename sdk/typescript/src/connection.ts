import { anyOf } from './aborts.ts';
import { decode, decodeError, encode, MSGPACK } from './codec/messages.ts';
import { CloudparError, InternalError, MasterUnreachable, RateLimited, RequestError, Unavailable } from './errors.ts';
import { Events } from './events.ts';
import { ROUTES } from './generated/shapes.ts';
import type { Fetch, FetchAnswer, FetchInit } from './http.ts';
import type { Link, Reply, Request, RouteName } from './messages.ts';
import { checkOptions } from './options.ts';
import { completionStatus } from './parts.ts';
import { Acquaintance, PATIENCE_S, Tries } from './patience.ts';
import { SURROUNDINGS, type Surroundings } from './surroundings.ts';

/** No answer for this long (beyond the time that a request asks to be held) counts as none. */
const ANSWER_S = 30;

/** A payload may take as long as on a slow line, four at a time. */
const SLOWEST_BYTES_PER_S = 50_000;

/** S3's answer to a second upload of a key; no key is ever used for two payloads. */
const THERE_ALREADY = 412;

/** S3's reason, with status 409, while an earlier try is still under way. */
const STILL_WRITTEN = 'ConditionalRequestConflict';

/** Where the master is, and who we are. */
export interface Address {
  readonly endpoint: string;
  readonly token: string;
}

/** How a connection behaves. */
export interface ConnectionOptions {
  /** How long to wait for a master that has gone away, in seconds; 300 by default. */
  readonly patienceS?: number | undefined;
  /** Called instead of the global fetch, such as for a proxy or a certificate authority of one's own. */
  readonly fetch?: Fetch | undefined;
}

/** How one call behaves. */
interface CallOptions {
  /** How long the master may take on purpose, in seconds. */
  readonly holdS?: number;
  /** Aborting it ends the call at once. */
  readonly signal?: AbortSignal | undefined;
  /** Aborting it has the call end with the answer to the request that is under way: no other follows. */
  readonly lastTry?: AbortSignal | undefined;
}

/** Requests to one master, and to the places that it sends us to; repeated until they succeed or cannot. */
export class Connection {
  /** The master's URL, without a slash at its end. */
  readonly endpoint: string;
  readonly #token: string;
  readonly #master: Acquaintance;
  readonly #surroundings: Surroundings;
  readonly #fetch: Fetch;
  readonly #events: Events;
  readonly #closing = new AbortController();

  constructor(address: Address, options?: ConnectionOptions);
  /** @internal */
  constructor(address: Address, options: ConnectionOptions | undefined, events: Events, surroundings?: Surroundings);
  constructor(
    address: Address,
    options: ConnectionOptions = {},
    events = new Events(),
    surroundings: Surroundings = SURROUNDINGS,
  ) {
    checkOptions('Connection', options);
    this.endpoint = address.endpoint.replace(/\/+$/, '');
    this.#token = address.token;
    this.#master = new Acquaintance(options.patienceS ?? PATIENCE_S);
    this.#surroundings = surroundings;
    this.#fetch = options.fetch ?? surroundings.fetch;
    this.#events = events;
  }

  /**
   * Aborted once the connection is closed.
   *
   * @internal
   */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Send a message until it is answered. It is the same message each time, so repeating it is harmless.
   *
   * @throws RequestError when the master refuses.
   * @throws MasterUnreachable when it did not answer for longer than the patience.
   */
  call<R extends RouteName>(route: R, message: Request<R>): Promise<Reply<R>>;
  /** @internal */
  call<R extends RouteName>(route: R, message: Request<R>, options: CallOptions): Promise<Reply<R>>;
  async call<R extends RouteName>(route: R, message: Request<R>, options: CallOptions = {}): Promise<Reply<R>> {
    const { request, reply } = ROUTES[route];
    const body = encode(request, message);
    const headers = {
      Authorization: `Bearer ${this.#token}`,
      'Content-Type': MSGPACK,
      Accept: MSGPACK,
      'Cloudpar-Links': 'relative',
    };
    return this.#persist(ANSWER_S + (options.holdS ?? 0), options, async (signal) => {
      const init = { method: 'POST', headers, body, signal, redirect: 'error' } as const;
      const response = await this.#fetch(`${this.endpoint}/v1/${route}`, init);
      const answer = new Uint8Array(await response.arrayBuffer());
      if (response.status !== 200) {
        throw refusal(answer, response.status);
      }
      return decode(reply, answer) as Reply<R>;
    });
  }

  /**
   * Upload a payload, or a part of one, to where the master said; resolves with its ETag. Putting the same again is
   * harmless: a store that has a payload there already has it from an earlier try.
   *
   * @internal
   */
  async put(link: Link, body: Uint8Array, ending?: AbortSignal): Promise<string> {
    return this.#persist(transferS(body.length), { signal: ending }, async (signal) => {
      const response = await this.#follow(link, { headers: sendable(link), body, signal });
      const answer = new Uint8Array(await response.arrayBuffer());
      if (!isGood(response.status) && response.status !== THERE_ALREADY) {
        throw blobError(answer, response.status, 'upload');
      }
      return response.headers.get('etag') ?? '';
    });
  }

  /**
   * Make one payload of parts. Doing it again is harmless, though a store may say that it knows no such parts.
   *
   * @internal
   */
  async complete(link: Link, body: Uint8Array, ending?: AbortSignal): Promise<void> {
    await this.#persist(ANSWER_S, { signal: ending }, async (signal) => {
      const headers = { ...sendable(link), 'Content-Type': 'application/xml' };
      const response = await this.#follow(link, { headers, body, signal });
      const answer = new Uint8Array(await response.arrayBuffer());
      const status = completionStatus(response.status, answer);
      if (status !== 200 && status !== THERE_ALREADY) {
        throw blobError(answer, status, 'upload');
      }
    });
  }

  /**
   * Download bytes [start, end) of a payload.
   *
   * @internal
   */
  async get(link: Link, start: number, end: number): Promise<Uint8Array> {
    return this.#persist(transferS(end - start), {}, async (signal) => {
      const headers = { ...sendable(link), Range: `bytes=${start}-${end - 1}` };
      const response = await this.#follow(link, { headers, signal });
      const answer = new Uint8Array(await response.arrayBuffer());
      if (response.status !== 200 && response.status !== 206) {
        throw blobError(answer, response.status, 'download');
      }
      // A store that ignores ranges sends the whole.
      const data = response.status === 200 ? answer.subarray(start, end) : answer;
      if (data.length !== end - start) {
        throw new Unavailable(`a download of ${end - start} bytes brought ${data.length}`);
      }
      return data;
    });
  }

  /** A relative link follows the endpoint, so that it takes the same way through proxies as calls do. */
  #follow(link: Link, init: Omit<FetchInit, 'method'>): Promise<FetchAnswer> {
    const url = link.url.startsWith('/') ? this.endpoint + link.url : link.url;
    return this.#fetch(url, { method: link.method, ...init });
  }

  /** End whatever is under way. */
  close(): void {
    this.#closing.abort(new CloudparError('the pool was closed meanwhile'));
  }

  async #persist<T>(answerS: number, options: CallOptions, once: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { now, random } = this.#surroundings;
    const tries = new Tries(this.#master, answerS, now(), random);
    const tried = anyOf(this.closed, options.signal);
    const repeated = anyOf(tried.signal, options.lastTry);
    try {
      for (;;) {
        const reason = await this.#try(once, tries.timeoutS(now()), tried.signal);
        if ('answer' in reason) {
          return reason.answer;
        }
        repeated.signal.throwIfAborted();
        await this.#surroundings.sleep(this.#pauseS(reason.error, tries), repeated.signal);
      }
    } finally {
      repeated.release();
      tried.release();
    }
  }

  /** How long to wait before the next try; throws if there is to be none. */
  #pauseS(error: unknown, tries: Tries): number {
    const now = this.#surroundings.now();
    if (error instanceof RequestError && !error.retryable) {
      throw this.#refused(error);
    }
    const askedS = error instanceof RequestError ? error.retryAfterS : undefined;
    // However long: the master is there, and there will be room. Before the first answer it may be anybody's page.
    if (error instanceof RateLimited && (this.#master.met || askedS !== undefined)) {
      this.#answered();
      const pauseS = tries.paced(now, askedS);
      const waitedS = now - (tries.pacedSince ?? now);
      if (this.#master.paced(tries.pacedSince ?? now, now)) {
        this.#events.emit({ type: 'request_delayed', waitedS, message: brief(error) });
      }
      return pauseS;
    }
    const delayS = tries.failed(now, askedS);
    if (delayS === undefined) {
      throw this.#givenUp(error, now - tries.began);
    }
    if (this.#master.failed(now)) {
      this.#events.emit({ type: 'master_away', endpoint: this.endpoint, message: brief(error) });
    }
    return delayS;
  }

  #answered(): void {
    const awayS = this.#master.answered(this.#surroundings.now());
    if (awayS !== undefined) {
      this.#events.emit({ type: 'master_back', endpoint: this.endpoint, awayS });
    }
  }

  async #try<T>(
    once: (signal: AbortSignal) => Promise<T>,
    timeoutS: number,
    ending: AbortSignal,
  ): Promise<{ answer: T } | { error: unknown }> {
    ending.throwIfAborted();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error(`no answer within ${timeoutS} s`)), timeoutS * 1000);
    const ended = anyOf(ending, late.signal);
    try {
      const answer = await once(ended.signal);
      this.#answered();
      return { answer };
    } catch (error) {
      return { error };
    } finally {
      clearTimeout(timer);
      ended.release();
    }
  }

  #refused(error: RequestError): CloudparError {
    // A plain RequestError is no answer of ours: somebody answers, but it is no master.
    if (error.constructor === RequestError && !this.#master.met) {
      return this.#unreachable(error, 0);
    }
    this.#answered();
    return error;
  }

  #givenUp(error: unknown, waitedS: number): CloudparError {
    return error instanceof RequestError && this.#master.met ? error : this.#unreachable(error, waitedS);
  }

  #unreachable(error: unknown, waitedS: number): MasterUnreachable {
    const fix = this.#master.met
      ? `waited ${waitedS.toFixed(0)} s for it (patienceS: ${this.#master.patienceS})`
      : 'check the endpoint, and that its master runs (on one machine: `cloudpar up`)';
    return new MasterUnreachable(`no master answers at ${this.endpoint}: ${brief(error)}; ${fix}`, { cause: error });
  }
}

function isGood(status: number): boolean {
  return status >= 200 && status < 300;
}

function transferS(size: number): number {
  return ANSWER_S + size / SLOWEST_BYTES_PER_S;
}

/** The link's headers, less those that fetch makes from the body itself. */
function sendable(link: Link): Record<string, string> {
  const own = new Set(['content-length', 'host']);
  return Object.fromEntries(Object.entries(link.headers).filter(([name]) => !own.has(name.toLowerCase())));
}

function refusal(body: Uint8Array, status: number): RequestError {
  const error = decodeError(body, status);
  // Somebody else's page: no use in asking again.
  return error instanceof InternalError && status < 500 ? new RequestError(error.message) : error;
}

function blobError(body: Uint8Array, status: number, what: string): RequestError {
  const text = new TextDecoder().decode(body.subarray(0, 200));
  const passing = status === 408 || status === 429 || status >= 500 || text.includes(STILL_WRITTEN);
  const Kind = passing ? Unavailable : RequestError;
  return new Kind(`the ${what} of a payload was answered with HTTP status ${status}: ${text}`);
}

/** fetch says only "fetch failed"; what failed is in the cause. */
function brief(error: unknown): string {
  const { message, cause } = error as Error;
  const inner = cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : undefined;
  return inner ?? message;
}
