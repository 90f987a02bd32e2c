// Most bytes of a large answer belong to lists of small parts, such as the results of a page. This module takes these
// lists out of the bytes, so that they can be decoded part by part, with breaks between the parts.

import { STRUCTS } from '../generated/shapes.ts';
import type { Shape, Struct } from './shapes.ts';

const TEXT = new TextDecoder();
const EMPTY_LIST = new Uint8Array([0x90]);

/**
 * For each first byte from 0xc0 on: how many bytes hold the length that follows it (0: no length follows), and how many
 * bytes of content follow whatever the length is.
 */
const LENGTH_BYTES = new Uint8Array(0x40);
const FIXED_BYTES = new Uint8Array(0x40);
/** How many values follow for each unit of the length. */
const PARTS = new Uint8Array(0x40);

function layout(first: number, lengthBytes: number, fixedBytes = 0, parts = 0): void {
  LENGTH_BYTES[first - 0xc0] = lengthBytes;
  FIXED_BYTES[first - 0xc0] = fixedBytes;
  PARTS[first - 0xc0] = parts;
}

for (const [power, bytes] of [1, 2, 4].entries()) {
  layout(0xc4 + power, bytes); // binary
  layout(0xc7 + power, bytes, 1); // extension
  layout(0xd9 + power, bytes); // text
}
for (const [power, bytes] of [1, 2, 4, 8].entries()) {
  layout(0xcc + power, 0, bytes); // unsigned integer
  layout(0xd0 + power, 0, bytes); // integer
}
for (const [power, bytes] of [1, 2, 4, 8, 16].entries()) {
  layout(0xd4 + power, 0, 1 + bytes); // extension of fixed size
}
for (const [power, bytes] of [2, 4].entries()) {
  layout(0xca + power, 0, 4 << power); // float
  layout(0xdc + power, bytes, 0, 1); // array
  layout(0xde + power, bytes, 0, 2); // map
}

/** The items of a list in a message, and the path of keys and indexes to the list. */
export interface LongList {
  readonly path: readonly (string | number)[];
  readonly item: Struct;
  /** The items in MessagePack, one after the other. */
  readonly items: Uint8Array;
}

/**
 * Takes out of a message the lists whose items are encoded as arrays.
 *
 * @returns The message with empty lists instead, and the lists. A message that is incomplete, or does not have the form
 *   of its struct, may be returned unchanged: decoding the message finds the error.
 */
export function takeOut(struct: Struct, body: Uint8Array): { rest: Uint8Array; lists: LongList[] } {
  const walk = new Walk(body);
  try {
    walk.struct(struct, []);
  } catch (error) {
    if (error instanceof RangeError) {
      return { rest: body, lists: [] };
    }
    throw error;
  }
  return walk.taken();
}

/** Reads the bytes of a message once. */
class Walk {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #lists: (LongList & { readonly start: number; readonly end: number })[] = [];
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  taken(): { rest: Uint8Array; lists: LongList[] } {
    let from = 0;
    const pieces: Uint8Array[] = [];
    for (const { start, end } of this.#lists) {
      pieces.push(this.#bytes.subarray(from, start), EMPTY_LIST);
      from = end;
    }
    const rest = this.#lists.length === 0 ? this.#bytes : Buffer.concat([...pieces, this.#bytes.subarray(from)]);
    return { rest, lists: this.#lists };
  }

  /** Reads a struct that is encoded as a map, and its fields that may contain long lists. */
  struct(struct: Struct, path: readonly (string | number)[]): void {
    const first = this.#byte(this.#at);
    if (struct.array || !(first >> 4 === 0x8 || first === 0xde || first === 0xdf)) {
      this.#skip(1);
      return;
    }
    for (let left = this.#count(); left > 0; left -= 1) {
      const start = this.#at;
      this.#skip(1);
      const key = TEXT.decode(this.#bytes.subarray(start + headBytes(this.#byte(start)), this.#at));
      const field = struct.fields.find(({ name }) => name === key);
      this.#field(field?.shape, [...path, key]);
    }
  }

  #field(shape: Shape | undefined, path: readonly (string | number)[]): void {
    const first = this.#byte(this.#at);
    const item = itemOf(shape);
    if (item === undefined || !(first >> 4 === 0x9 || first === 0xdc || first === 0xdd)) {
      this.#skip(1);
      return;
    }
    const start = this.#at;
    const count = this.#count();
    const from = this.#at;
    if (item.array) {
      this.#skip(count);
      this.#lists.push({ path, item, items: this.#bytes.subarray(from, this.#at), start, end: this.#at });
    } else {
      for (let index = 0; index < count; index += 1) {
        this.struct(item, [...path, index]);
      }
    }
  }

  /** Skips the head of an array or a map; returns the number of its items or entries. */
  #count(): number {
    const first = this.#byte(this.#at);
    const lengthBytes = first < 0xc0 ? 0 : (LENGTH_BYTES[first - 0xc0] as number);
    this.#at += 1 + lengthBytes;
    return lengthBytes === 0 ? first & 0x0f : this.#length(this.#at - lengthBytes, lengthBytes);
  }

  #length(at: number, bytes: number): number {
    return bytes === 1 ? this.#view.getUint8(at) : bytes === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }

  #byte(at: number): number {
    return this.#view.getUint8(at); // throws a RangeError behind the end
  }

  /** Skips this many values with all their parts. */
  #skip(values: number): void {
    let at = this.#at;
    for (let left = values; left > 0; left -= 1) {
      const first = this.#byte(at);
      at += 1;
      if (first >= 0xe0 || first < 0x80) {
        // The first byte is the whole value: an integer.
      } else if (first < 0x90) {
        left += 2 * (first & 0x0f);
      } else if (first < 0xa0) {
        left += first & 0x0f;
      } else if (first < 0xc0) {
        at += first & 0x1f;
      } else {
        const lengthBytes = LENGTH_BYTES[first - 0xc0] as number;
        const length = lengthBytes === 0 ? 0 : this.#length(at, lengthBytes);
        const parts = PARTS[first - 0xc0] as number;
        left += parts * length;
        at += lengthBytes + (FIXED_BYTES[first - 0xc0] as number) + (parts === 0 ? length : 0);
      }
    }
    if (at > this.#bytes.length) {
      throw new RangeError('the message is cut short');
    }
    this.#at = at;
  }
}

/** Returns the number of bytes before the characters of a text. */
function headBytes(first: number): number {
  return first < 0xc0 ? 1 : 1 + (LENGTH_BYTES[first - 0xc0] as number);
}

/** Returns the struct of a list's items, if the shape is such a list. */
function itemOf(shape: Shape | undefined): Struct | undefined {
  const item = typeof shape === 'object' && 'list' in shape ? shape.list : undefined;
  return typeof item === 'object' && 'struct' in item ? STRUCTS[item.struct] : undefined;
}
