import { encodeTimestampExtension } from '@msgpack/msgpack';

const TEXT = new TextEncoder();
const SMALLEST_BYTES = 256;
const DEEPEST = 500;
const LONGEST_PATH = 200;
const TIMESTAMP = 0xff;

type NumberArray =
  | Int8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/** The error for a value that MessagePack cannot hold. `path` leads to the value, as in `[3].when`. */
export class UnsupportedValue extends Error {
  path = '';
}

/**
 * Writes MessagePack value by value in the shortest forms, which are the same bytes that the Python side writes.
 *
 * Encoders of libraries choose between integer and float by the value, and JavaScript does not distinguish 1.0 from 1.
 * Here the caller chooses, because it knows the type of the field.
 */
export class Writer {
  #bytes = new Uint8Array(SMALLEST_BYTES);
  #view = new DataView(this.#bytes.buffer);

  /** How many bytes have been written. */
  length = 0;

  /** Returns a view of the bytes between two positions. Later writes may move the bytes elsewhere. */
  view(start = 0, end = this.length): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(start, end);
  }

  nil(): void {
    this.#byte(0xc0);
  }

  bool(value: boolean): void {
    this.#byte(value ? 0xc3 : 0xc2);
  }

  /** Appends an integer between -(2 ** 63) and 2 ** 64 - 1. */
  int(value: number | bigint): void {
    if (typeof value === 'bigint' || value > 0xffffffff || value < -0x80000000) {
      this.#wide(BigInt(value));
    } else if (value >= 0) {
      this.#natural(value);
    } else {
      this.#negative(value);
    }
  }

  #natural(value: number): void {
    if (value < 0x80) {
      this.#byte(value);
    } else {
      this.#sized(value, 0xcc);
    }
  }

  #negative(value: number): void {
    if (value >= -0x20) {
      this.#byte(0x100 + value);
    } else if (value >= -0x80) {
      this.#at(2, 0xd0).setInt8(this.length - 1, value);
    } else if (value >= -0x8000) {
      this.#at(3, 0xd1).setInt16(this.length - 2, value);
    } else {
      this.#at(5, 0xd2).setInt32(this.length - 4, value);
    }
  }

  #wide(value: bigint): void {
    if (value <= 0xffffffffn && value >= -0x80000000n) {
      this.int(Number(value));
    } else if (value >= 0n && value < 1n << 64n) {
      this.#at(9, 0xcf).setBigUint64(this.length - 8, value);
    } else if (value < 0n && value >= -(1n << 63n)) {
      this.#at(9, 0xd3).setBigInt64(this.length - 8, value);
    } else {
      throw new UnsupportedValue(`is ${value}, which has more than 64 bits`);
    }
  }

  float(value: number): void {
    this.#at(9, 0xcb).setFloat64(this.length - 8, value);
  }

  /** Appends a float that fits into 32 bits. */
  float32(value: number): void {
    this.#at(5, 0xca).setFloat32(this.length - 4, value);
  }

  str(value: string): void {
    const mostBytes = value.length * 3;
    if (mostBytes < 0x20) {
      this.#reserve(1 + mostBytes);
      const { written } = TEXT.encodeInto(value, this.#bytes.subarray(this.length + 1));
      this.#byte(0xa0 | written);
      this.length += written;
      return;
    }
    const bytes = TEXT.encode(value);
    if (bytes.length < 0x20) {
      this.#byte(0xa0 | bytes.length);
    } else {
      this.#sized(bytes.length, 0xd9);
    }
    this.raw(bytes);
  }

  bin(value: Uint8Array): void {
    this.#sized(value.length, 0xc4);
    this.raw(value);
  }

  /** Starts an array; its items follow. */
  array(length: number): void {
    if (length < 0x10) {
      this.#byte(0x90 | length);
    } else {
      this.#counted(length, 0xdc);
    }
  }

  /** Starts a map; its keys and values follow in turn. */
  map(length: number): void {
    if (length < 0x10) {
      this.#byte(0x80 | length);
    } else {
      this.#counted(length, 0xde);
    }
  }

  /** Appends bytes unchanged. */
  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /**
   * Appends any plain value.
   *
   * @throws UnsupportedValue when a part of the value is not plain data.
   */
  value(value: unknown, depth = 0): void {
    if (typeof value === 'string') {
      this.str(value);
    } else if (typeof value === 'number') {
      this.#number(value);
    } else if (typeof value === 'object' && value !== null) {
      this.#object(value, depth);
    } else if (typeof value === 'boolean') {
      this.bool(value);
    } else if (typeof value === 'bigint') {
      this.int(value);
    } else if (value === null || value === undefined) {
      this.nil();
    } else {
      throw new UnsupportedValue(`is a ${typeof value}`);
    }
  }

  #number(value: number): void {
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
      this.int(value);
    } else {
      this.float(value);
    }
  }

  #object(value: object, depth: number): void {
    if (depth > DEEPEST) {
      throw new UnsupportedValue('is nested too deeply, or contains itself');
    }
    if (Array.isArray(value)) {
      this.#items(value, depth);
    } else if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
      this.bin(new Uint8Array(value));
    } else if (ArrayBuffer.isView(value)) {
      this.#elements(value);
    } else if (value instanceof Date) {
      this.#timestamp(value);
    } else {
      this.#record(value, depth);
    }
  }

  #items(items: readonly unknown[], depth: number): void {
    this.array(items.length);
    let index = 0;
    try {
      for (; index < items.length; index += 1) {
        this.value(items[index], depth + 1);
      }
    } catch (error) {
      throw located(error, `[${index}]`);
    }
  }

  /**
   * Writes a Uint8Array, a Uint8ClampedArray or a DataView as bytes. Python gets any other typed array as a list of its
   * numbers.
   */
  #elements(array: ArrayBufferView): void {
    if (array instanceof Uint8Array || array instanceof Uint8ClampedArray || array instanceof DataView) {
      this.bin(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
      return;
    }
    const numbers = array as NumberArray;
    this.array(numbers.length);
    if (numbers instanceof Float64Array) {
      for (const number of numbers) {
        this.float(number);
      }
    } else if (/^Float(16|32)Array$/.test(numbers.constructor.name)) {
      for (const number of numbers as Float32Array) {
        this.float32(number);
      }
    } else {
      for (const number of numbers) {
        this.int(number);
      }
    }
  }

  #record(record: object, depth: number): void {
    const prototype: unknown = Object.getPrototypeOf(record);
    if (prototype !== Object.prototype && prototype !== null) {
      throw new UnsupportedValue(`is an instance of ${record.constructor?.name ?? 'a class'}`);
    }
    const fields = record as Record<string, unknown>;
    const keys = Object.keys(fields);
    let count = 0;
    for (const key of keys) {
      count += fields[key] === undefined ? 0 : 1;
    }
    this.map(count);
    let key = '';
    try {
      for (key of keys) {
        const part = fields[key];
        if (part !== undefined) {
          this.str(key);
          this.value(part, depth + 1);
        }
      }
    } catch (error) {
      throw located(error, `.${key}`);
    }
  }

  #timestamp(value: Date): void {
    if (Number.isNaN(value.getTime())) {
      throw new UnsupportedValue('is no valid date');
    }
    const data = encodeTimestampExtension(value) ?? new Uint8Array();
    const code = { 4: 0xd6, 8: 0xd7 }[data.length];
    if (code === undefined) {
      this.#sized(data.length, 0xc7);
    } else {
      this.#byte(code);
    }
    this.#byte(TIMESTAMP);
    this.raw(data);
  }

  /** Writes a size in 1, 2 or 4 bytes, whose codes are consecutive. */
  #sized(size: number, code: number): void {
    if (size < 0x100) {
      this.#at(2, code).setUint8(this.length - 1, size);
    } else {
      this.#counted(size, code + 1);
    }
  }

  /** Writes a count in 2 or 4 bytes. */
  #counted(count: number, code: number): void {
    if (count < 0x10000) {
      this.#at(3, code).setUint16(this.length - 2, count);
    } else {
      this.#at(5, code + 1).setUint32(this.length - 4, count);
    }
  }

  #byte(value: number): void {
    this.#at(1, value);
  }

  /** Makes room for `size` bytes that start with `code`. */
  #at(size: number, code: number): DataView {
    this.#reserve(size);
    this.#bytes[this.length] = code;
    this.length += size;
    return this.#view;
  }

  #reserve(size: number): void {
    const needed = this.length + size;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, this.length));
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
  }
}

/** Returns the same error with one more step in its path. */
function located(error: unknown, step: string): unknown {
  if (error instanceof UnsupportedValue && error.path.length < LONGEST_PATH) {
    error.path = step + error.path;
  }
  return error;
}
