// Decides which packages the next request names, when to send it, and how long the master may hold it. This is a state
// machine without I/O or clocks: it takes events (added, answered, ...) and returns instructions (`next`).

import { type CloudparError, NotFound } from './errors.ts';
import { BULK_ITEMS, HOLD_S } from './limits.ts';
import type { Message, Reply, Request } from './messages.ts';
import { gatherS } from './pacing.ts';
import type { News, Package } from './package.ts';

/**
 * The longest time before a request that names a new package, in seconds, if the master's last answer named a delay.
 * Without such a delay the request is sent at once.
 */
const NEW_PACKAGE_S = 0.1;

/**
 * The shortest pause after an answer without news, in seconds. It applies in three cases: the master was not allowed to
 * hold the request, a package is about to start, or more than RESTLESS_TIMES such answers in a row came sooner than
 * this.
 */
const RESTLESS_S = 0.05;
const RESTLESS_TIMES = 3;

/** The next action: poll, wait for some seconds, or rest until a package is added or resumed. */
export type Step = { readonly poll: Poll } | { readonly waitS: number } | 'rest';

/** A request, and the packages that it names, in the same order. */
export interface Poll {
  readonly request: Request<'await_tasks'>;
  readonly asked: readonly Package[];
  readonly holdS: number;
}

/** The running packages of one client. Times are in seconds, of any clock that never goes back. */
export class Awaiter {
  readonly #session: string;
  #underWay = new Set<Package>();
  #starting = 0;
  #dueAt = 0;
  #retryAfterS = 0;
  #restless = 0;

  constructor(session: string) {
    this.#session = session;
  }

  /**
   * Records that a package is about to start. Until it has started, the master must not hold new requests, since they
   * cannot name this package.
   */
  startRequested(): void {
    this.#starting += 1;
  }

  /** Records that the start has ended; `started` is undefined if there is no package to ask about. */
  startDone(started: Package | undefined, now: number): void {
    this.#starting -= 1;
    if (started !== undefined) {
      this.#underWay.add(started);
      this.#dueAt = Math.min(this.#dueAt, now + (this.#retryAfterS > 0 ? NEW_PACKAGE_S : 0));
    }
  }

  /** Stops asking about a package. The package itself continues. */
  drop(dropped: Package): void {
    this.#underWay.delete(dropped);
  }

  /** The packages about which the client asks the master. */
  get underWay(): readonly Package[] {
    return [...this.#underWay];
  }

  /** Returns the next action. */
  next(now: number): Step {
    if (this.#active.length === 0) {
      return 'rest';
    }
    return this.#dueAt > now ? { waitS: this.#dueAt - now } : { poll: this.#poll() };
  }

  /** The packages whose buffers have room for results. */
  get #active(): Package[] {
    return [...this.#underWay].filter(({ paused }) => !paused);
  }

  /**
   * Records that the buffer of a paused package has room for results again. The next request is sent at once, or after
   * NEW_PACKAGE_S if the master's last answer named a delay.
   */
  resume(now: number): void {
    this.#dueAt = Math.min(this.#dueAt, now + (this.#retryAfterS > 0 ? NEW_PACKAGE_S : 0));
  }

  /** Requests again the results of a package that were left at the master. */
  rewind(left: Package, now: number): void {
    left.rewind();
    this.#underWay.add(left);
    this.resume(now);
  }

  #poll(): Poll {
    const active = this.#active;
    const asked = active.slice(0, BULK_ITEMS);
    const whole = asked.length === active.length;
    if (!whole) {
      // The others come first in the next request.
      this.#underWay = new Set([...[...this.#underWay].filter((each) => !asked.includes(each)), ...asked]);
    }
    const holdS = whole && this.#starting === 0 && !asked.some(({ more }) => more) ? HOLD_S : 0;
    const packages = asked.map(({ id, cursor }) => ({ package_id: id, cursor }));
    return { request: { session: this.#session, packages, hold_s: holdS }, asked, holdS };
  }

  /**
   * Processes the answer to a request.
   *
   * @param tookS How long the answer took, by the clock.
   * @returns The news of each package in the answer.
   */
  answered(poll: Poll, reply: Reply<'await_tasks'>, tookS: number, now: number): Map<Package, News> {
    const found = new Map<Package, News>();
    let anyNews = Object.keys(reply.missing).length > 0;
    for (const [awaited, status, cursor] of matched(poll, reply.packages)) {
      if (cursor !== awaited.cursor) {
        continue; // it was rewound meanwhile
      }
      anyNews ||= status.results.length > 0 || status.state !== 'running';
      found.set(awaited, awaited.take(status));
    }
    for (const awaited of poll.asked) {
      const reason = reply.missing[awaited.id];
      if (reason !== undefined) {
        awaited.lost(new NotFound(`package ${awaited.id}: ${reason}`));
        found.set(awaited, { results: [], fetches: [], links: {}, page: awaited.cursor });
      }
    }
    this.#pause(poll, reply.retry_after_s, anyNews, tookS, now);
    this.#sortOut(poll.asked);
    return found;
  }

  /** Records that a request has failed for good. The packages that it names end with the error. */
  unanswered(poll: Poll, error: CloudparError): void {
    for (const awaited of poll.asked) {
      awaited.lost(error);
      this.drop(awaited);
    }
  }

  /** Decides when to ask next. */
  #pause(poll: Poll, retryAfterS: number, anyNews: boolean, tookS: number, now: number): void {
    this.#retryAfterS = retryAfterS;
    const running = this.#active.filter(({ phase }) => phase === 'running');
    let pauseS: number;
    if (running.some(({ more }) => more)) {
      pauseS = 0;
    } else if (anyNews) {
      pauseS = gatherS(running.map(({ progress, startedAt }) => ({ progress, elapsedS: now - startedAt })));
    } else {
      this.#restless = poll.holdS > 0 && tookS < RESTLESS_S ? this.#restless + 1 : 0;
      const restless = this.#starting > 0 || this.#restless > RESTLESS_TIMES || poll.holdS === 0;
      pauseS = Math.max(retryAfterS, restless ? RESTLESS_S : 0);
    }
    if (running.some((each) => !poll.asked.includes(each))) {
      pauseS = Math.min(pauseS, retryAfterS > 0 ? NEW_PACKAGE_S : 0);
    }
    this.#dueAt = now + pauseS;
  }

  /** Stops asking about packages that have ended, even if their large results are still being downloaded. */
  #sortOut(asked: readonly Package[]): void {
    for (const awaited of asked) {
      if (awaited.phase === 'ended' || (awaited.state !== 'running' && !awaited.more)) {
        this.drop(awaited);
      }
    }
  }
}

/**
 * Pairs each status with its package and with the cursor that the request named for this package. The statuses are in
 * the order of the request, but some packages of the request have no status.
 */
function* matched(
  { asked, request }: Poll,
  statuses: readonly Message<'PackageStatus'>[],
): Generator<[Package, Message<'PackageStatus'>, number]> {
  let next = 0;
  for (const status of statuses) {
    const index = asked.findIndex(({ id }, position) => position >= next && id === status.package_id);
    const awaited = asked[index];
    if (awaited !== undefined) {
      next = index + 1;
      yield [awaited, status, request.packages[index]?.cursor ?? 0];
    }
  }
}
