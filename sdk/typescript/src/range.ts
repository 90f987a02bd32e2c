/**
 * The integers from `start` up to but not including `stop`, by `step`. A map without `buffersize` sends a range of any
 * length as two numbers.
 */
export class Range implements Iterable<number> {
  readonly start: number;
  readonly step: number;
  readonly length: number;

  constructor(start: number, stop: number, step: number) {
    if (![start, stop, step].every(Number.isSafeInteger) || step === 0) {
      throw new RangeError(`range(${start}, ${stop}, ${step}): give integers, and a step that is not 0`);
    }
    this.start = start;
    this.step = step;
    this.length = Math.max(0, Math.ceil((stop - start) / step));
  }

  /** Returns the integer with this number, from 0. */
  at(index: number): number {
    return this.start + index * this.step;
  }

  /** Yields each integer in turn. */
  *[Symbol.iterator](): Iterator<number> {
    for (let index = 0; index < this.length; index += 1) {
      yield this.at(index);
    }
  }
}

/** Makes a range like Python's: `range(3)` is 0, 1, 2. */
export function range(stop: number): Range;
export function range(start: number, stop: number, step?: number): Range;
export function range(start: number, stop?: number, step = 1): Range {
  return stop === undefined ? new Range(0, start, step) : new Range(start, stop, step);
}
