import type { MapPart } from './map-part.ts';
import type { TaskResult } from './package.ts';

/** About how much memory a result takes besides its data. */
const RESULT_BYTES = 256;

type StoredResult = readonly [MapPart, TaskResult];

/** Results that wait for their reader, by the numbers of their tasks in the map. */
export class ResultStore {
  readonly #all = new Map<number, StoredResult>();
  /** Results of this task and of later tasks are left at the master. */
  #horizon = Number.POSITIVE_INFINITY;
  /** The memory that the results take. */
  bytes = 0;
  /** How many results with an error were kept, including results that were read. */
  errors = 0;

  /** Whether no result waits. */
  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** The task number of the waiting result that came first; undefined if no result waits. */
  get first(): number | undefined {
    return this.#all.keys().next().value;
  }

  has(number: number): boolean {
    return this.#all.has(number);
  }

  /** Keeps results of a part, and leaves those beyond the horizon at the master. */
  add(part: MapPart, results: readonly TaskResult[]): void {
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

  /** The waiting result with an error that came first. */
  get firstError(): StoredResult | undefined {
    for (const stored of this.#all.values()) {
      if (stored[1].outcome !== 'ok') {
        return stored;
      }
    }
    return undefined;
  }

  take(number: number): StoredResult | undefined {
    const stored = this.#all.get(number);
    if (stored !== undefined) {
      this.#all.delete(number);
      this.bytes -= sizeOf(stored[1]);
    }
    return stored;
  }

  /**
   * Leaves results of the last tasks at the master until the rest takes at most this many bytes, as far as possible.
   */
  shrink(bytes: number): void {
    // Sort only the numbers: there may be 300,000 results, and sorting pairs would block the event loop for long.
    const numbers = Float64Array.from(this.#all.keys()).sort();
    const left = new Map<MapPart, TaskResult[]>();
    for (let at = numbers.length - 1; at >= 0 && this.bytes > bytes; at -= 1) {
      const number = numbers[at] as number;
      const [part, result] = this.#all.get(number) as StoredResult;
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

  /**
   * Whether it is time to request the results that were left: the reader's next task, which has this number, is one of
   * them, or the waiting results take less than `bytes`.
   */
  isNear(number: number, bytes: number): boolean {
    return this.#horizon < Number.POSITIVE_INFINITY && (this.#horizon <= number || this.bytes < bytes);
  }

  /** Keeps all results from now on. */
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
 * Whether a result may be left at the master. A large result may not, since it is downloaded only when there is room. A
 * result of a failed package may not either: the reader must read all results to know which tasks have no result.
 */
function isDroppable([part, { blob }]: StoredResult): boolean {
  return part.package?.failure === undefined && blob === null;
}

function sizeOf({ data }: TaskResult): number {
  return RESULT_BYTES + (data?.length ?? 0);
}
