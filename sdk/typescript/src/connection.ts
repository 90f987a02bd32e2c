import { decodeError, decodeWithBreaks, encode, MSGPACK } from './codec/messages.ts';
import { InternalError, RequestError, Unavailable } from './errors.ts';
import { Events } from './events.ts';
import { ROUTES } from './generated/shapes.ts';
import type { Fetch, FetchAnswer, FetchInit } from './http.ts';
import { MasterIdentity } from './identity.ts';
import type { Link, Reply, Request, RouteName } from './messages.ts';
import { completionStatus } from './multipart.ts';
import { checkOptions } from './options.ts';
import { PLATFORM, type Platform } from './platform.ts';
import { type CallOptions, Retrier } from './retrier.ts';
import { PATIENCE_S } from './retry-policy.ts';

/**
 * An attempt fails after this many seconds without an answer, in addition to the time for which the master may hold the
 * request.
 */
const ANSWER_S = 30;

/**
 * The time limit of an upload or download assumes at least this speed for each of the four payloads that may be sent at
 * a time.
 */
const SLOWEST_BYTES_PER_S = 50_000;

/**
 * S3's status for a second upload of a key. This status counts as success, since no key is ever used for two payloads.
 */
const THERE_ALREADY = 412;

/** Statuses from 400 to 499 that are not a refusal for good: request timeout, uploaded already, too many requests. */
const NO_REFUSALS = new Set([408, THERE_ALREADY, 429]);

/** S3's error code, with status 409, while an earlier attempt is still in progress. */
const STILL_WRITTEN = 'ConditionalRequestConflict';

/** The master's URL, and the account's token. */
export interface Address {
  readonly endpoint: string;
  readonly token: string;
}

/** How a connection behaves. */
export interface ConnectionOptions {
  /** How long to wait for a master that has stopped answering, in seconds; 300 by default. */
  readonly patienceS?: number | undefined;
  /** Replaces the global fetch, for example to use a proxy or another certificate authority. */
  readonly fetch?: Fetch | undefined;
}

/** Sends requests to one master and to its storage, and repeats them until they succeed or cannot succeed. */
export class Connection {
  /** The master's URL, without a slash at its end. */
  readonly endpoint: string;
  readonly #identity: MasterIdentity;
  readonly #retrier: Retrier;
  readonly #fetch: Fetch;

  constructor(address: Address, options?: ConnectionOptions);
  /** @internal */
  constructor(address: Address, options: ConnectionOptions | undefined, events: Events, platform?: Platform);
  constructor(address: Address, options: ConnectionOptions = {}, events = new Events(), platform: Platform = PLATFORM) {
    checkOptions('Connection', options);
    this.endpoint = address.endpoint.replace(/\/+$/, '');
    this.#retrier = new Retrier(this.endpoint, options.patienceS ?? PATIENCE_S, events, platform);
    this.#fetch = options.fetch ?? platform.fetch;
    this.#identity = new MasterIdentity(this.endpoint, address.token, this.#fetch, () => platform.now());
  }

  /**
   * Sends a message until it is answered. Each attempt sends the same message, so repeating it is harmless.
   *
   * @throws RequestError when the master refuses, or cannot serve the request for longer than the patience.
   * @throws MasterUnreachable when the master did not answer for longer than the patience (or for longer than 8 s if it
   *   has never answered), or when another program answers at its address.
   * @throws CloudparError when the connection is closed.
   */
  call<R extends RouteName>(route: R, message: Request<R>): Promise<Reply<R>>;
  /** @internal */
  call<R extends RouteName>(route: R, message: Request<R>, options: CallOptions): Promise<Reply<R>>;
  async call<R extends RouteName>(route: R, message: Request<R>, options: CallOptions = {}): Promise<Reply<R>> {
    const { request, reply } = ROUTES[route];
    const body = encode(request, message);
    return this.#retrier.untilAnswered(ANSWER_S + (options.holdS ?? 0), options, async (signal) => {
      const response = await this.#believed(() => this.#post(route, body, signal));
      const answer = new Uint8Array(await response.arrayBuffer());
      if (response.status !== 200) {
        throw refusal(answer, response.status);
      }
      return (await decodeWithBreaks(reply, answer)) as Reply<R>;
    });
  }

  async #post(route: string, body: Uint8Array, signal: AbortSignal): Promise<FetchAnswer> {
    const headers = {
      Authorization: await this.#identity.authorization(signal),
      'Content-Type': MSGPACK,
      Accept: MSGPACK,
      'Cloudpar-Links': 'relative',
    };
    return this.#send(`${this.endpoint}/v1/${route}`, { method: 'POST', headers, body, signal, redirect: 'error' });
  }

  /**
   * Sends a request. If the request is refused although the master has proved itself earlier, requires a new proof and
   * sends the request once more. The master may have restarted since the proof: the new process then refuses a
   * credential for the earlier process. Or another process has taken the master's port, and its refusal must not end
   * the work. The client cannot know this before, because fetch does not show that it uses another connection.
   */
  async #believed(send: () => Promise<FetchAnswer>): Promise<FetchAnswer> {
    const response = await send();
    if (!isRefusal(response.status) || !this.#identity.isProved) {
      return response;
    }
    this.#identity.forget();
    return send();
  }

  /** Sends a request to the master's own address. */
  async #send(url: string, init: FetchInit): Promise<FetchAnswer> {
    try {
      return await this.#fetch(url, init);
    } catch (error) {
      this.#identity.forget();
      throw error;
    }
  }

  /**
   * Uploads a payload, or a part of a payload, by the master's link; resolves with the ETag. Repeating an upload does
   * no harm: if the store already has the payload, an earlier attempt stored it.
   *
   * @internal
   */
  async put(link: Link, body: Uint8Array, ending?: AbortSignal): Promise<string> {
    return this.#retrier.untilAnswered(transferS(body.length), { signal: ending }, async (signal) => {
      const response = await this.#follow(link, { headers: sendable(link), body, signal });
      const answer = new Uint8Array(await response.arrayBuffer());
      if (!isGood(response.status) && response.status !== THERE_ALREADY) {
        throw blobError(answer, response.status, 'upload');
      }
      return response.headers.get('etag') ?? '';
    });
  }

  /**
   * Combines parts into one payload. Repeating this does no harm, though a store may answer that it does not know the
   * parts.
   *
   * @internal
   */
  async complete(link: Link, body: Uint8Array, ending?: AbortSignal): Promise<void> {
    await this.#retrier.untilAnswered(ANSWER_S, { signal: ending }, async (signal) => {
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
   * Downloads bytes [start, end) of a payload.
   *
   * @internal
   */
  async get(link: Link, start: number, end: number): Promise<Uint8Array> {
    return this.#retrier.untilAnswered(transferS(end - start), {}, async (signal) => {
      const headers = { ...sendable(link), Range: `bytes=${start}-${end - 1}` };
      const response = await this.#follow(link, { headers, signal });
      const answer = new Uint8Array(await response.arrayBuffer());
      if (response.status !== 200 && response.status !== 206) {
        throw blobError(answer, response.status, 'download');
      }
      // A store that ignores ranges sends the whole payload.
      const data = response.status === 200 ? answer.subarray(start, end) : answer;
      if (data.length !== end - start) {
        throw new Unavailable(`a download of ${end - start} bytes brought ${data.length}`);
      }
      return data;
    });
  }

  /**
   * Sends the request of a link. A relative link is appended to the endpoint, so that its request passes through the
   * same proxies as calls.
   */
  async #follow(link: Link, init: Omit<FetchInit, 'method'>): Promise<FetchAnswer> {
    const all = { method: link.method, ...init };
    if (!link.url.startsWith('/')) {
      return this.#fetch(link.url, all);
    }
    // The link stays valid after a restart of the master, so no other process should see it.
    return this.#believed(async () => {
      await this.#identity.authorization(init.signal);
      return this.#send(this.endpoint + link.url, all);
    });
  }

  /** Ends all running requests. */
  close(): void {
    this.#retrier.close();
  }
}

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && !NO_REFUSALS.has(status);
}

function isGood(status: number): boolean {
  return status >= 200 && status < 300;
}

function transferS(size: number): number {
  return ANSWER_S + size / SLOWEST_BYTES_PER_S;
}

/** The link's headers without those that fetch derives from the body. */
function sendable(link: Link): Record<string, string> {
  const own = new Set(['content-length', 'host']);
  return Object.fromEntries(Object.entries(link.headers).filter(([name]) => !own.has(name.toLowerCase())));
}

function refusal(body: Uint8Array, status: number): RequestError {
  const error = decodeError(body, status);
  // This is a page of another server, so repeating the request does not help.
  return error instanceof InternalError && status < 500 ? new RequestError(error.message) : error;
}

function blobError(body: Uint8Array, status: number, what: string): RequestError {
  const text = new TextDecoder().decode(body.subarray(0, 200));
  const passing = status === 408 || status === 429 || status >= 500 || text.includes(STILL_WRITTEN);
  const Kind = passing ? Unavailable : RequestError;
  return new Kind(`the ${what} of a payload was answered with HTTP status ${status}: ${text}`);
}
