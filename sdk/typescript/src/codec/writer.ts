const TEXT = new TextEncoder();
const SMALLEST_BYTES = 256;

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

  /** Appends an extension. */
  ext(type: number, data: Uint8Array): void {
    const code = { 4: 0xd6, 8: 0xd7 }[data.length];
    if (code === undefined) {
      this.#sized(data.length, 0xc7);
    } else {
      this.#byte(code);
    }
    this.#byte(type);
    this.raw(data);
  }

  /** Writes a size in 1, 2 or 4 bytes. The codes of the three forms are consecutive; `code` is the first one. */
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
