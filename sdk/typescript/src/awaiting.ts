// Which packages to ask for, when, and for how long the master may hold the question: a state machine without I/O or
// clocks. Stimuli in (added, answered, ...), instructions out (`next`).

import { type CloudparError, NotFound } from './errors.ts';
import { BULK_ITEMS, HOLD_S } from './limits.ts';
import type { Message, Reply, Request } from './messages.ts';
import { gatherS } from './pacing.ts';
import type { News, Package } from './package.ts';

/** With a master that never holds: when to ask first for a package that was started meanwhile. */
const NEW_PACKAGE_S = 0.1;

/** A held question that is answered at once, without news, again and again: ask no faster than this. */
const RESTLESS_S = 0.05;
const RESTLESS_TIMES = 3;

/** What to do now: ask, wait (in seconds), or rest until something is added. */
export type Step = { readonly ask: Question } | { readonly waitS: number } | 'rest';

/** A request, and the packages that it is about, in their order. */
export interface Question {
  readonly request: Request<'await_tasks'>;
  readonly asked: readonly Package[];
  readonly holdS: number;
}

/** The packages under way of one client. Times in seconds, of any clock that never goes back. */
export class Awaiting {
  readonly #session: string;
  #underWay = new Set<Package>();
  #starting = 0;
  #due = 0;
  #retryAfterS = 0;
  #restless = 0;

  constructor(session: string) {
    this.#session = session;
  }

  /** A package is about to be started: do not ask to be held without it. */
  startBegins(): void {
    this.#starting += 1;
  }

  /** It was started (or could not be). */
  startEnds(started: Package | undefined, now: number): void {
    this.#starting -= 1;
    if (started !== undefined) {
      this.#underWay.add(started);
      this.#due = Math.min(this.#due, now + (this.#retryAfterS > 0 ? NEW_PACKAGE_S : 0));
    }
  }

  /** Ask no more for a package, which continues to run. */
  drop(dropped: Package): void {
    this.#underWay.delete(dropped);
  }

  /** The packages that are being asked for. */
  get underWay(): readonly Package[] {
    return [...this.#underWay];
  }

  /** What to do now. */
  next(now: number): Step {
    if (this.#active.length === 0) {
      return 'rest';
    }
    return this.#due > now ? { waitS: this.#due - now } : { ask: this.#question() };
  }

  /** The packages whose results have room in their buffers. */
  get #active(): Package[] {
    return [...this.#underWay].filter(({ paused }) => !paused);
  }

  /** A package that was paused has room again: ask for it as soon as the master allows. */
  resume(now: number): void {
    this.#due = Math.min(this.#due, now + (this.#retryAfterS > 0 ? NEW_PACKAGE_S : 0));
  }

  /** Ask again for results of a package that were left at the master. */
  rewind(left: Package, now: number): void {
    left.rewind();
    this.#underWay.add(left);
    this.resume(now);
  }

  #question(): Question {
    const active = this.#active;
    const asked = active.slice(0, BULK_ITEMS);
    const whole = asked.length === active.length;
    if (!whole) {
      // The others come first next time.
      this.#underWay = new Set([...[...this.#underWay].filter((each) => !asked.includes(each)), ...asked]);
    }
    const holdS = whole && this.#starting === 0 && !asked.some(({ more }) => more) ? HOLD_S : 0;
    const packages = asked.map(({ id, cursor }) => ({ package_id: id, cursor }));
    return { request: { session: this.#session, packages, hold_s: holdS }, asked, holdS };
  }

  /**
   * The answer to a question has come.
   *
   * @param tookS How long it took, by the clock.
   * @returns What is new of each package that the answer is about.
   */
  answered(question: Question, reply: Reply<'await_tasks'>, tookS: number, now: number): Map<Package, News> {
    const found = new Map<Package, News>();
    let anyNews = Object.keys(reply.missing).length > 0;
    for (const [awaited, status, cursor] of matched(question, reply.packages)) {
      if (cursor !== awaited.cursor) {
        continue; // it was rewound meanwhile
      }
      anyNews ||= status.results.length > 0 || status.state !== 'running';
      found.set(awaited, awaited.take(status));
    }
    for (const awaited of question.asked) {
      const reason = reply.missing[awaited.id];
      if (reason !== undefined) {
        awaited.lost(new NotFound(`package ${awaited.id}: ${reason}`));
        found.set(awaited, { results: [], fetches: [], links: {}, page: awaited.cursor });
      }
    }
    this.#pause(question, reply.retry_after_s, anyNews, tookS, now);
    this.#sortOut(question.asked);
    return found;
  }

  /** There was no answer, and there will be none. */
  unanswered(question: Question, error: CloudparError): void {
    for (const awaited of question.asked) {
      awaited.lost(error);
      this.drop(awaited);
    }
  }

  /** Decide when to ask next. */
  #pause(question: Question, retryAfterS: number, anyNews: boolean, tookS: number, now: number): void {
    this.#retryAfterS = retryAfterS;
    const running = this.#active.filter(({ phase }) => phase === 'running');
    let pauseS: number;
    if (running.some(({ more }) => more)) {
      pauseS = 0;
    } else if (anyNews) {
      pauseS = gatherS(running.map(({ progress, startedAt }) => ({ progress, elapsedS: now - startedAt })));
    } else {
      this.#restless = question.holdS > 0 && tookS < RESTLESS_S ? this.#restless + 1 : 0;
      const restless = this.#starting > 0 || this.#restless > RESTLESS_TIMES || question.holdS === 0;
      pauseS = Math.max(retryAfterS, restless ? RESTLESS_S : 0);
    }
    if (running.some((each) => !question.asked.includes(each))) {
      pauseS = Math.min(pauseS, retryAfterS > 0 ? NEW_PACKAGE_S : 0);
    }
    this.#due = now + pauseS;
  }

  /** What has ended is not asked for again; large results may still be coming in. */
  #sortOut(asked: readonly Package[]): void {
    for (const awaited of asked) {
      if (awaited.phase === 'ended' || (awaited.state !== 'running' && !awaited.more)) {
        this.drop(awaited);
      }
    }
  }
}

/** Statuses come in the order of the questions, less those without one; each with its package, and the cursor asked. */
function* matched(
  { asked, request }: Question,
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
