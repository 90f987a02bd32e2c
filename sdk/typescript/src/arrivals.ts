import type { TaskResult } from './package.ts';
import type { Part } from './part.ts';

/** What a result takes in memory beside its data, about. */
const RESULT_BYTES = 256;

type Arrival = readonly [Part, TaskResult];

/** Results that wait for their reader, by their tasks' numbers in the map. */
export class Arrivals {
  readonly #all = new Map<number, Arrival>();
  /** Results in the master's answers for this task and later ones are left at the master. */
  #horizon = Number.POSITIVE_INFINITY;
  /** What they take in memory. */
  bytes = 0;
  /** Those that ended in an error, and were not left; also of those that were read. */
  errors = 0;

  /** Whether none is there. */
  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** The number of the one that came first. */
  get first(): number | undefined {
    return this.#all.keys().next().value;
  }

  has(number: number): boolean {
    return this.#all.has(number);
  }

  /** Keep results of a part; those beyond the horizon are left at the master. */
  add(part: Part, results: readonly TaskResult[]): void {
    const left: TaskResult[] = [];
    for (const result of results) {
      const number = part.base + result.index;
      if (number >= this.#horizon && isDroppable([part, result])) {
        left.push(result);
      } else {
        this.#all.set(number, [part, result]);
        this.bytes += sizeOf(result);
        this.errors += result.outcome === 'ok' ? 0 : 1;
      }
    }
    if (left.length > 0) {
      part.leave(left);
    }
  }

  /** The first to come of those that ended in an error. */
  get firstError(): Arrival | undefined {
    for (const arrival of this.#all.values()) {
      if (arrival[1].outcome !== 'ok') {
        return arrival;
      }
    }
    return undefined;
  }

  take(number: number): Arrival | undefined {
    const arrival = this.#all.get(number);
    if (arrival !== undefined) {
      this.#all.delete(number);
      this.bytes -= sizeOf(arrival[1]);
    }
    return arrival;
  }

  /** Leave results of the last tasks at the master until no more than these bytes are there, as far as that goes. */
  shrink(bytes: number): void {
    // Numbers only: there may be 300,000 results, and sorting pairs of them keeps the event loop waiting.
    const numbers = Float64Array.from(this.#all.keys()).sort();
    const left = new Map<Part, TaskResult[]>();
    for (let at = numbers.length - 1; at >= 0 && this.bytes > bytes; at -= 1) {
      const number = numbers[at] as number;
      const [part, result] = this.#all.get(number) as Arrival;
      if (!isDroppable([part, result])) {
        continue;
      }
      this.take(number);
      this.errors -= result.outcome === 'ok' ? 0 : 1;
      this.#horizon = number;
      const ofPart = left.get(part) ?? [];
      left.set(part, ofPart);
      ofPart.push(result);
    }
    for (const [part, results] of left) {
      part.leave(results);
    }
  }

  /** Whether the reader, before this number, has come near enough to what was left. */
  isNear(number: number, bytes: number): boolean {
    return this.#horizon < Number.POSITIVE_INFINITY && (this.#horizon <= number || this.bytes < bytes);
  }

  /** Keep everything from now on. */
  rewind(): void {
    this.#horizon = Number.POSITIVE_INFINITY;
  }

  clear(): void {
    this.#all.clear();
    this.bytes = 0;
    this.rewind();
  }
}

/**
 * Not a large one, which is downloaded only when there is room; nor one of a package that has failed, whose reader waits
 * for what will never come: that is known once all of it was read.
 */
function isDroppable([part, { blob }]: Arrival): boolean {
  return part.package?.failure === undefined && blob === null;
}

function sizeOf({ data }: TaskResult): number {
  return RESULT_BYTES + (data?.length ?? 0);
}
