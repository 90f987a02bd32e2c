import { anyOf } from './aborts.ts';
import { alreadyClosed, closedMeanwhile } from './closed.ts';
import { type CloudparError, MasterUnreachable, RateLimited, RequestError } from './errors.ts';
import type { Events } from './events.ts';
import { Acquaintance, Tries } from './patience.ts';
import type { Surroundings } from './surroundings.ts';

/** Options of one call. */
export interface CallOptions {
  /** How long the master may hold the request, in seconds. */
  readonly holdS?: number;
  /** Ends the call at once when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** When it is aborted, the call ends with the answer to the request that is running, and sends no other. */
  readonly lastTry?: AbortSignal | undefined;
}

/** Repeats requests, with growing delays, until they are answered or cannot succeed. */
export class Repetition {
  readonly #endpoint: string;
  readonly #master: Acquaintance;
  readonly #surroundings: Surroundings;
  readonly #events: Events;
  readonly #closing = new AbortController();

  constructor(endpoint: string, patienceS: number, events: Events, surroundings: Surroundings) {
    this.#endpoint = endpoint;
    this.#master = new Acquaintance(patienceS);
    this.#events = events;
    this.#surroundings = surroundings;
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
   * @param answerS A request has failed after this long without an answer.
   * @throws RequestError when the answer is a refusal.
   * @throws MasterUnreachable when there was no answer for longer than the patience.
   */
  async untilAnswered<T>(answerS: number, options: CallOptions, once: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.closed.aborted) {
      throw alreadyClosed();
    }
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

  /** Returns how long to wait before the next attempt; throws if there is to be none. */
  #pauseS(error: unknown, tries: Tries): number {
    const now = this.#surroundings.now();
    if (error instanceof RequestError && !error.retryable) {
      throw this.#refused(error);
    }
    const askedS = error instanceof RequestError ? error.retryAfterS : undefined;
    // No time limit: the master is there, and takes the request later. Before its first answer, another server may have
    // sent this.
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
      this.#events.emit({ type: 'master_away', endpoint: this.#endpoint, message: brief(error) });
    }
    return delayS;
  }

  #answered(): void {
    const awayS = this.#master.answered(this.#surroundings.now());
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
    // A plain RequestError is no answer of a master: another server answers at this endpoint.
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
    return new MasterUnreachable(`no master answers at ${this.#endpoint}: ${brief(error)}; ${fix}`, { cause: error });
  }
}

/** Describes fetch's error by its cause: fetch itself says only "fetch failed". */
function brief(error: unknown): string {
  const { message, cause } = error as Error;
  const inner = cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : undefined;
  return inner ?? message;
}
