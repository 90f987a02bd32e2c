import { decodeError, decodeWithBreaks, encode, MSGPACK } from './codec/messages.ts';
import { InternalError, RequestError, Unavailable } from './errors.ts';
import { Events } from './events.ts';
import { ROUTES } from './generated/shapes.ts';
import type { Fetch, FetchAnswer, FetchInit } from './http.ts';
import type { Link, Reply, Request, RouteName } from './messages.ts';
import { checkOptions } from './options.ts';
import { completionStatus } from './parts.ts';
import { PATIENCE_S } from './patience.ts';
import { type CallOptions, Repetition } from './repetition.ts';
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

/** Requests to one master, and to the places that it sends us to; repeated until they succeed or cannot. */
export class Connection {
  /** The master's URL, without a slash at its end. */
  readonly endpoint: string;
  readonly #token: string;
  readonly #repetition: Repetition;
  readonly #fetch: Fetch;

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
    this.#repetition = new Repetition(this.endpoint, options.patienceS ?? PATIENCE_S, events, surroundings);
    this.#fetch = options.fetch ?? surroundings.fetch;
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
    return this.#repetition.untilAnswered(ANSWER_S + (options.holdS ?? 0), options, async (signal) => {
      const init = { method: 'POST', headers, body, signal, redirect: 'error' } as const;
      const response = await this.#fetch(`${this.endpoint}/v1/${route}`, init);
      const answer = new Uint8Array(await response.arrayBuffer());
      if (response.status !== 200) {
        throw refusal(answer, response.status);
      }
      return (await decodeWithBreaks(reply, answer)) as Reply<R>;
    });
  }

  /**
   * Upload a payload, or a part of one, to where the master said; resolves with its ETag. Putting the same again is
   * harmless: a store that has a payload there already has it from an earlier try.
   *
   * @internal
   */
  async put(link: Link, body: Uint8Array, ending?: AbortSignal): Promise<string> {
    return this.#repetition.untilAnswered(transferS(body.length), { signal: ending }, async (signal) => {
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
    await this.#repetition.untilAnswered(ANSWER_S, { signal: ending }, async (signal) => {
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
    return this.#repetition.untilAnswered(transferS(end - start), {}, async (signal) => {
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
    this.#repetition.close();
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
  // Another server's page: repeating the request does not help.
  return error instanceof InternalError && status < 500 ? new RequestError(error.message) : error;
}

function blobError(body: Uint8Array, status: number, what: string): RequestError {
  const text = new TextDecoder().decode(body.subarray(0, 200));
  const passing = status === 408 || status === 429 || status >= 500 || text.includes(STILL_WRITTEN);
  const Kind = passing ? Unavailable : RequestError;
  return new Kind(`the ${what} of a payload was answered with HTTP status ${status}: ${text}`);
}
