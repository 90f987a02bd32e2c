// How long to go on asking a master that does not answer: pure, like cloudpar/patience.py.

/** A master that never answered is given up after this: a wrong endpoint shall be an error within 10 s. */
export const FIRST_CONTACT_S = 8;

/** How long to wait for a master that has gone away. */
export const PATIENCE_S = 300;

const GROWTH = 2;
const SHORTEST_S = 0.02;
const LONGEST_S = 5;
const MOST_DOUBLINGS = 30;

/** What one client knows of its master. */
export interface Acquaintance {
  readonly patienceS: number;
  /** Whether the master ever answered. */
  met: boolean;
}

/** The repetitions of one request: how long each may take, how long to wait before the next, when to give up. */
export class Tries {
  readonly #master: Acquaintance;
  readonly #answerS: number;
  readonly #random: () => number;
  #strange: boolean;
  #count = 0;
  #paces = 0;

  /** From when on time counts: for a master that never answered the first try, otherwise its failure. */
  began: number;

  constructor(master: Acquaintance, answerS: number, now: number, random: () => number) {
    this.#master = master;
    this.#answerS = answerS;
    this.#random = random;
    this.#strange = !master.met;
    this.began = now;
  }

  /** How long to go on in all. */
  get allowanceS(): number {
    return this.#strange ? Math.min(FIRST_CONTACT_S, this.#master.patienceS) : this.#master.patienceS;
  }

  /** How long to wait for the next answer. */
  timeoutS(now: number): number {
    return this.#strange ? Math.max(0.1, this.began + this.allowanceS - now) : this.#answerS;
  }

  /**
   * How long to wait because the master says so: it is there, so this is no failure and never the end. Not before what
   * it says, and ever more seldom.
   */
  paced(askedS = 0): number {
    this.#paces += 1;
    this.#count = 0;
    this.#strange = false;
    return Math.max(askedS, grownS(this.#paces)) * (1 + 0.25 * this.#random());
  }

  /** How long to wait before the next try; undefined: give up. `askedS` is the master's own wish. */
  failed(now: number, askedS = 0): number | undefined {
    this.#count += 1;
    if (this.#count === 1 && !this.#strange) {
      this.began = now;
    }
    const delayS = Math.max(askedS, grownS(this.#count)) * (0.75 + 0.5 * this.#random());
    return now + delayS - this.began <= this.allowanceS ? delayS : undefined;
  }
}

function grownS(count: number): number {
  return Math.min(LONGEST_S, SHORTEST_S * GROWTH ** Math.min(count - 1, MOST_DOUBLINGS));
}
