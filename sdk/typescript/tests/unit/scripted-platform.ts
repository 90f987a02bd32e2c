import { encode } from '../../src/codec/messages.ts';
import type { Draft, MessageName } from '../../src/messages.ts';
import type { Platform } from '../../src/platform.ts';

/** The answer to one request. */
export type Answer = () => Response | Promise<Response>;

/** A request as it was sent. */
export interface Sent {
  readonly url: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly method: string | undefined;
}

/** Platform without network, with a clock that only sleeping moves; the last answer repeats. */
export class ScriptedPlatform implements Platform {
  readonly sent: Sent[] = [];
  readonly slept: number[] = [];
  readonly #answers: Answer[];
  #now = 0;

  constructor(...answers: Answer[]) {
    this.#answers = answers;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    if (String(input).endsWith('/v1/prove')) {
      return new Response(null, { status: 404 }); // as masters up to 0.2.0
    }
    const body = init?.body as Uint8Array | undefined;
    const headers = new Headers(init?.headers);
    this.sent.push({ url: String(input), headers, body: body ?? new Uint8Array(), method: init?.method });
    init?.signal?.throwIfAborted();
    const answer = this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0];
    if (answer === undefined) {
      throw new Error('the script is over');
    }
    return answer();
  };

  readonly now = (): number => this.#now;

  readonly random = (): number => 0.5;

  readonly sleep = async (seconds: number, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    this.slept.push(seconds);
    this.#now += seconds;
  };
}

/** A message of the master. */
export function reply<K extends MessageName>(name: K, message: Draft<K>, status = 200): Answer {
  return () => new Response(encode(name, message), { status });
}

/** An error of the master. */
export function error(code: string, status: number, retryAfterS: number | null = null): Answer {
  return reply('ErrorReply', { code, message: `because of ${code}`, retry_after_s: retryAfterS }, status);
}

/** No answer at all. */
export const silence: Answer = () => {
  throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
};
