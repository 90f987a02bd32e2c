// Decides how long to repeat requests to a master that does not answer, without I/O.

/** How long to try a master that has never answered, in seconds. A wrong endpoint then causes an error within 10 s. */
export const FIRST_CONTACT_S = 8;

/** How long to wait for a master that does not answer any more, in seconds. */
export const PATIENCE_S = 300;

const GROWTH = 2;
const SHORTEST_S = 0.02;
const LONGEST_S = 5;
const MOST_DOUBLINGS = 30;

/** After this many seconds without an answer, the pool reports that the master does not answer. */
const AWAY_S = 1;

/** The pool reports a request that the master delays for NOTICE_S seconds, at most every NOTICE_EVERY_S seconds. */
const NOTICE_S = 5;
const NOTICE_EVERY_S = 60;

/** How one master answered recently. All requests to the master share this object. */
export class RetryPolicy {
  readonly patienceS: number;
  /** Whether the master has ever answered. */
  met = false;
  #awayAt: number | undefined;
  #reported = false;
  #noticedAt: number | undefined;

  constructor(patienceS: number) {
    this.patienceS = patienceS;
  }

  /** Records that the master answered. Returns how long it was away if the pool has reported that it is away. */
  answered(now: number): number | undefined {
    const awayS = this.#reported && this.#awayAt !== undefined ? now - this.#awayAt : undefined;
    this.met = true;
    this.#awayAt = undefined;
    this.#reported = false;
    return awayS;
  }

  /** Records that the master gave no answer, or no useful answer. Returns whether to report this now. */
  failed(now: number): boolean {
    this.#awayAt ??= now;
    const report = this.met && !this.#reported && now - this.#awayAt >= AWAY_S;
    this.#reported ||= report;
    return report;
  }

  /** Records that the master has delayed a request since `pacedAt`. Returns whether to report this now. */
  paced(pacedAt: number, now: number): boolean {
    const recent = this.#noticedAt !== undefined && now - this.#noticedAt < NOTICE_EVERY_S;
    if (now - pacedAt < NOTICE_S || recent) {
      return false;
    }
    this.#noticedAt = now;
    return true;
  }
}

/** The attempts of one request: how long each may take, how long to wait before the next, and when to give up. */
export class RequestAttempts {
  readonly #policy: RetryPolicy;
  readonly #answerS: number;
  readonly #random: () => number;
  #strange: boolean;
  #count = 0;
  #paces = 0;

  /** When the master first delayed the request. */
  pacedAt: number | undefined;

  /**
   * When the waiting time started. If the master has never answered, this is the time of the first attempt. Otherwise
   * it is the time of the first failure since the last delay by the master.
   */
  startedAt: number;

  constructor(policy: RetryPolicy, answerS: number, now: number, random: () => number) {
    this.#policy = policy;
    this.#answerS = answerS;
    this.#random = random;
    this.#strange = !policy.met;
    this.startedAt = now;
  }

  /** How long to repeat the request in all. */
  get allowanceS(): number {
    return this.#strange ? Math.min(FIRST_CONTACT_S, this.#policy.patienceS) : this.#policy.patienceS;
  }

  /** How long to wait for the next answer. */
  timeoutS(now: number): number {
    return this.#strange ? Math.max(0.1, this.startedAt + this.allowanceS - now) : this.#answerS;
  }

  /**
   * Returns how long to wait because the master limits the rate. The master answers, so this is not a failure, and the
   * client never gives up. The pause is at least the pause that the master requires, and grows with each attempt.
   */
  paced(now: number, askedS = 0): number {
    this.#paces += 1;
    this.pacedAt ??= now;
    this.#count = 0;
    this.#strange = false;
    return Math.max(askedS, grownS(this.#paces)) * (1 + 0.25 * this.#random());
  }

  /**
   * Returns how long to wait before the next attempt, or undefined to give up. `askedS` is the pause that the master
   * requires.
   */
  failed(now: number, askedS = 0): number | undefined {
    this.#count += 1;
    if (this.#count === 1 && !this.#strange) {
      this.startedAt = now;
    }
    const delayS = Math.max(askedS, grownS(this.#count)) * (0.75 + 0.5 * this.#random());
    return now + delayS - this.startedAt <= this.allowanceS ? delayS : undefined;
  }
}

function grownS(count: number): number {
  return Math.min(LONGEST_S, SHORTEST_S * GROWTH ** Math.min(count - 1, MOST_DOUBLINGS));
}
