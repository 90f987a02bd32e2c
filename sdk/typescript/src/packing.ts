import { crc32 } from 'node:zlib';
import { writeValue } from './codec/values.ts';
import { Writer } from './codec/writer.ts';
import { TooLarge } from './errors.ts';
import { BLOB_BYTES, INLINE_DATA_BYTES, PACKAGE_TASKS } from './limits.ts';
import type { Draft } from './messages.ts';
import { Range } from './range.ts';
import { SEAL_BYTES, type Seals } from './seals.ts';

const ITEM_OVERHEAD_BYTES = 5;
const OFFSET_BYTES = 8;

/** The task data of n tasks: what goes into start_tasks, or a blob that must be uploaded first. */
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

/** The values of a map: one a task. */
export type Values = Iterable<unknown> | AsyncIterable<unknown>;

/**
 * Collect and serialize the data of a package.
 *
 * @param seals The package's, if it is to be sealed.
 * @throws SerializationError when a value is not what MessagePack holds.
 * @throws TooLarge when there are more values or more bytes than a package carries.
 */
export async function pack(values: Values, seals?: Seals): Promise<Packed> {
  if (values instanceof Range && values.length <= PACKAGE_TASKS) {
    return { n: values.length, data: { type: 'range', start: values.start, step: values.step } };
  }
  const packer = new Packer(seals);
  if (Symbol.asyncIterator in values) {
    for await (const value of values) {
      packer.append(value);
    }
  } else {
    for (const value of values) {
      packer.append(value);
    }
  }
  return packer.finish();
}

class Packer {
  readonly #writer = new Writer();
  readonly #offsets = [0];
  readonly #made: Uint8Array[] = [];
  readonly #seals: Seals | undefined;

  constructor(seals: Seals | undefined) {
    this.#seals = seals;
  }

  /** The seals of all items, one after the other. */
  get #together(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(Buffer.concat(this.#made));
  }

  append(value: unknown): void {
    const index = this.#offsets.length - 1;
    if (index === PACKAGE_TASKS) {
      throw new TooLarge(
        `the values passed ${PACKAGE_TASKS.toLocaleString('en')} items, the most that one package carries: split them ` +
          'into several maps, or give each task more to do',
      );
    }
    writeValue(this.#writer, value, `the value of task ${index}`);
    const start = this.#offsets[index];
    this.#offsets.push(this.#writer.length);
    if (this.#seals !== undefined) {
      this.#made.push(this.#seals.data(index, this.#writer.view(start)));
    }
    const sealed = SEAL_BYTES * this.#made.length;
    const size = this.#writer.length + sealed + OFFSET_BYTES * (index + 2);
    if (size > BLOB_BYTES) {
      throw tooLarge(index, size, this.#writer.length - (start ?? 0) + sealed / (index + 1) + 2 * OFFSET_BYTES);
    }
  }

  finish(): Packed {
    const writer = this.#writer;
    const n = this.#offsets.length - 1;
    if (writer.length + SEAL_BYTES * this.#made.length + ITEM_OVERHEAD_BYTES * n <= INLINE_DATA_BYTES) {
      const items = this.#offsets.slice(1).map((end, index) => writer.view(this.#offsets[index], end));
      return { n, data: { type: 'inline', items, seals: this.#together } };
    }
    const table = new DataView(new ArrayBuffer(OFFSET_BYTES * this.#offsets.length));
    for (const [index, offset] of this.#offsets.entries()) {
      table.setBigUint64(OFFSET_BYTES * index, BigInt(offset), true);
    }
    writer.raw(this.#together);
    writer.raw(new Uint8Array(table.buffer));
    const body = writer.view();
    return { n, data: { type: 'blob', body, crc32: crc32(body) } };
  }
}

function tooLarge(index: number, all: number, alone: number): TooLarge {
  const carried = `and a package carries ${BLOB_BYTES}`;
  return new TooLarge(
    alone > BLOB_BYTES
      ? `the value of task ${index} alone takes ${alone} bytes, ${carried}: send a reference (a path, a URL) that the ` +
          'task reads itself'
      : `the values of the first ${index + 1} tasks take ${all} bytes, ${carried}: split them into several maps, or ` +
          'send references (paths, URLs, ranges) that the tasks read themselves',
  );
}
