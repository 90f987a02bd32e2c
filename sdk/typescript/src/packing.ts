import { crc32 } from 'node:zlib';
import { writeValue } from './codec/value-writer.ts';
import { Writer } from './codec/writer.ts';
import { TooLarge } from './errors.ts';
import { Breaks } from './event-loop.ts';
import { BLOB_BYTES, INLINE_DATA_BYTES, INLINE_ITEM_BYTES, PACKAGE_TASKS } from './limits.ts';
import type { Draft } from './messages.ts';
import { Range } from './range.ts';
import { SEAL_BYTES, type Seals } from './seals.ts';
import type { Source } from './source.ts';

const OFFSET_BYTES = 8;

/** The signal of calls without a signal of their caller. It is never aborted. */
const NEVER = new AbortController().signal;

/**
 * The task data of n tasks: data inside the request start_tasks, or a blob that must be uploaded before the request.
 */
export interface Packed {
  readonly n: number;
  readonly data: Exclude<Draft<'StartTasks'>['data'], { type: 'blob' }> | Blob;
}

/** A payload ready for upload. */
export interface Blob {
  readonly type: 'blob';
  readonly body: Uint8Array<ArrayBuffer>;
  readonly crc32: number;
}

/** How many bytes of a payload one step of a checksum reads. */
const CHECKED_BYTES = 1 << 22;

/**
 * Collects and serializes the data of a package. About every 10 ms the event loop runs other work of the program.
 *
 * @param source The values. A range is sent as two numbers.
 * @param seals The package's seals; undefined if the package is not sealed.
 * @param limit The most values to take. Further values stay in the source.
 * @throws SerializationError when a value is not what MessagePack holds.
 * @throws TooLarge when there are more values or more bytes than a package may have.
 * @throws the signal's reason once it is aborted, or the error of the values' own iterator.
 */
export async function pack(
  source: Source | Range,
  seals?: Seals,
  signal: AbortSignal = NEVER,
  limit = Number.POSITIVE_INFINITY,
): Promise<Packed> {
  if (source instanceof Range) {
    if (source.length > PACKAGE_TASKS) {
      throw tooMany();
    }
    return { n: source.length, data: { type: 'range', start: source.start, step: source.step } };
  }
  const packer = new Packer(seals);
  await source.take(limit, (value) => packer.append(value), signal);
  return packer.finish(signal);
}

/** Computes zlib's checksum of a large payload, with breaks. */
export async function checksum(body: Uint8Array, signal: AbortSignal = NEVER): Promise<number> {
  const breaks = new Breaks();
  let sum = 0;
  for (let start = 0; start < body.length; start += CHECKED_BYTES) {
    signal.throwIfAborted();
    sum = crc32(body.subarray(start, start + CHECKED_BYTES), sum);
    if (breaks.isOverdue()) {
      await breaks.take();
    }
  }
  return sum;
}

class Packer {
  readonly #writer = new Writer();
  readonly #offsets = [0];
  readonly #seals: Seals | undefined;
  /** The seals of all items, one after the other, with room for more. */
  #made = new Uint8Array(64 * SEAL_BYTES);

  constructor(seals: Seals | undefined) {
    this.#seals = seals;
  }

  get #sealed(): number {
    return this.#seals === undefined ? 0 : SEAL_BYTES * (this.#offsets.length - 1);
  }

  append(value: unknown): void {
    const index = this.#offsets.length - 1;
    if (index === PACKAGE_TASKS) {
      throw tooMany();
    }
    writeValue(this.#writer, value, `the value of task ${index}`);
    const start = this.#offsets[index];
    this.#offsets.push(this.#writer.length);
    this.#seal(index, start);
    const sealed = this.#sealed;
    const size = this.#writer.length + sealed + OFFSET_BYTES * (index + 2);
    if (size > BLOB_BYTES) {
      throw tooLarge(index, size, this.#writer.length - (start ?? 0) + sealed / (index + 1) + 2 * OFFSET_BYTES);
    }
  }

  #seal(index: number, start: number | undefined): void {
    if (this.#seals === undefined) {
      return;
    }
    const place = SEAL_BYTES * index;
    if (place === this.#made.length) {
      const larger = new Uint8Array(2 * place);
      larger.set(this.#made);
      this.#made = larger;
    }
    this.#seals.data(index, this.#writer.view(start), this.#made, place);
  }

  async finish(signal: AbortSignal): Promise<Packed> {
    const writer = this.#writer;
    const n = this.#offsets.length - 1;
    const seals = this.#made.slice(0, this.#sealed);
    if (writer.length + seals.length + INLINE_ITEM_BYTES * n <= INLINE_DATA_BYTES) {
      const items = this.#offsets.slice(1).map((end, index) => writer.view(this.#offsets[index], end));
      return { n, data: { type: 'inline', items, seals } };
    }
    writer.raw(seals);
    writer.raw(await this.#table(signal));
    const body = writer.view();
    return { n, data: { type: 'blob', body, crc32: await checksum(body, signal) } };
  }

  /** Writes the start of each item and the end of the last item, as integers of 64 bits, with the lower half first. */
  async #table(signal: AbortSignal): Promise<Uint8Array> {
    const breaks = new Breaks();
    const table = new DataView(new ArrayBuffer(OFFSET_BYTES * this.#offsets.length));
    for (let index = 0; index < this.#offsets.length; index += 1) {
      const offset = this.#offsets[index] as number;
      table.setUint32(OFFSET_BYTES * index, offset, true); // BLOB_BYTES is below 2 ** 32: the upper half is 0
      if (breaks.isDue()) {
        signal.throwIfAborted();
        await breaks.take();
      }
    }
    return new Uint8Array(table.buffer);
  }
}

function tooMany(): TooLarge {
  return new TooLarge(
    `the values passed ${PACKAGE_TASKS.toLocaleString('en')} items, the most that one package carries: give ` +
      'buffersize (for example 10_000), so that they travel in several packages while results are read',
  );
}

function tooLarge(index: number, all: number, alone: number): TooLarge {
  const carried = `and a package carries ${BLOB_BYTES}`;
  return new TooLarge(
    alone > BLOB_BYTES
      ? `the value of task ${index} alone takes ${alone} bytes, ${carried}: send a reference (a path, a URL) that the ` +
          'task reads itself'
      : `the values of the first ${index + 1} tasks take ${all} bytes, ${carried}: give buffersize, so that they ` +
          'travel in several packages, or send references (paths, URLs, ranges) that the tasks read themselves',
  );
}
