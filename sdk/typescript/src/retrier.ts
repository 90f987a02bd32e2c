import { anyOf } from './abort-signals.ts';
import { alreadyClosed, closedMeanwhile } from './closed.ts';
import { type CloudparError, MasterUnreachable, RateLimited, RequestError } from './errors.ts';
import type { Events } from './events.ts';
import type { Platform } from './platform.ts';
import { RequestAttempts, RetryPolicy } from './retry-policy.ts';

/** Options of one call. */
export interface CallOptions {
  /** How long the master may hold the request, in seconds. */
  readonly holdS?: number;
  /** Ends the call at once when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * When this signal is aborted, the call ends with the answer to the running request, and sends no further request.
   */
  readonly lastTry?: AbortSignal | undefined;
}

/** Repeats requests, with growing delays, until they are answered or cannot succeed. */
export class Retrier {
  readonly #endpoint: string;
  readonly #policy: RetryPolicy;
  readonly #platform: Platform;
  readonly #events: Events;
  readonly #closing = new AbortController();

  constructor(endpoint: string, patienceS: number, events: Events, platform: Platform) {
    this.#endpoint = endpoint;
    this.#policy = new RetryPolicy(patienceS);
    this.#events = events;
    this.#platform = platform;
  }

  /** Aborted once no more requests are sent. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /** Ends all running requests. */
  close(): void {
    this.#closing.abort(closedMeanwhile());
  }

  /**
   * Sends a request until it is answered.
   *
   * @param answerS An attempt has failed after this many seconds without an answer.
   * @throws RequestError when the answer is a refusal, or the master cannot serve the request for longer than the
   *   patience.
   * @throws MasterUnreachable when there was no answer for longer than the patience (from a master that has never
   *   answered: for longer than FIRST_CONTACT_S), or when another program answers.
   * @throws CloudparError when the pool is closed, and the reason of `signal` or `lastTry` once it is aborted.
   */
  async untilAnswered<T>(answerS: number, options: CallOptions, once: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.closed.aborted) {
      throw alreadyClosed();
    }
    const { now, random } = this.#platform;
    const attempts = new RequestAttempts(this.#policy, answerS, now(), random);
    const tried = anyOf(this.closed, options.signal);
    const repeated = anyOf(tried.signal, options.lastTry);
    try {
      for (;;) {
        const reason = await this.#try(once, attempts.timeoutS(now()), tried.signal);
        if ('answer' in reason) {
          return reason.answer;
        }
        repeated.signal.throwIfAborted();
        await this.#platform.sleep(this.#pauseS(reason.error, attempts), repeated.signal);
      }
    } finally {
      repeated.release();
      tried.release();
    }
  }

  /** Returns how long to wait before the next attempt; throws if there must not be another attempt. */
  #pauseS(error: unknown, attempts: RequestAttempts): number {
    const now = this.#platform.now();
    if (error instanceof RequestError && !error.retryable) {
      throw this.#refused(error);
    }
    const askedS = error instanceof RequestError ? error.retryAfterS : undefined;
    // There is no time limit here, because the master answers and will take the request later. But before the master's
    // first answer, a refusal that names no delay may come from another server.
    if (error instanceof RateLimited && (this.#policy.met || askedS !== undefined)) {
      this.#answered();
      const pauseS = attempts.paced(now, askedS);
      const waitedS = now - (attempts.pacedAt ?? now);
      if (this.#policy.paced(attempts.pacedAt ?? now, now)) {
        this.#events.emit({ type: 'request_delayed', waitedS, message: brief(error) });
      }
      return pauseS;
    }
    const delayS = attempts.failed(now, askedS);
    if (delayS === undefined) {
      throw this.#givenUp(error, now - attempts.startedAt);
    }
    if (this.#policy.failed(now)) {
      this.#events.emit({ type: 'master_away', endpoint: this.#endpoint, message: brief(error) });
    }
    return delayS;
  }

  #answered(): void {
    const awayS = this.#policy.answered(this.#platform.now());
    if (awayS !== undefined) {
      this.#events.emit({ type: 'master_back', endpoint: this.#endpoint, awayS });
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
    // A plain RequestError is not an answer of a master: another server answers at this endpoint.
    if (error.constructor === RequestError && !this.#policy.met) {
      return this.#unreachable(error, 0);
    }
    this.#answered();
    return error;
  }

  #givenUp(error: unknown, waitedS: number): CloudparError {
    return error instanceof RequestError && this.#policy.met ? error : this.#unreachable(error, waitedS);
  }

  #unreachable(error: unknown, waitedS: number): MasterUnreachable {
    const fix = this.#policy.met
      ? `waited ${waitedS.toFixed(0)} s for it (patienceS: ${this.#policy.patienceS})`
      : 'check the endpoint, and that its master runs (on one machine: `cloudpar up`)';
    return new MasterUnreachable(`no master answers at ${this.#endpoint}: ${brief(error)}; ${fix}`, { cause: error });
  }
}

/** Describes fetch's error by its cause: fetch itself says only "fetch failed". */
function brief(error: unknown): string {
  const { message, cause } = error as Error;
  const inner = cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : undefined;
  return inner ?? message;
}
