import { encodeTimestampExtension } from '@msgpack/msgpack';
import { SerializationError } from '../errors.ts';
import { UnsupportedValue, type Writer } from './writer.ts';

const DEEPEST = 500;
const LONGEST_PATH = 200;
const TIMESTAMP = -1;

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

/**
 * Appends an argument of a task.
 *
 * @param where The argument's name, for the error message.
 * @throws SerializationError when a part of it is not what MessagePack holds.
 */
export function writeValue(writer: Writer, value: unknown, where: string): void {
  try {
    write(writer, value, 0);
  } catch (error) {
    if (!(error instanceof UnsupportedValue)) {
      throw error;
    }
    throw new SerializationError(
      `${where}${error.path} ${error.message}, and MessagePack does not hold that: tasks take null, booleans, numbers, bigints of at most 64 ` +
        'bits, strings, ArrayBuffers, typed arrays, Dates, and arrays and plain objects of these',
    );
  }
}

function write(writer: Writer, value: unknown, depth: number): void {
  if (typeof value === 'string') {
    writer.str(value);
  } else if (typeof value === 'number') {
    writeNumber(writer, value);
  } else if (typeof value === 'object' && value !== null) {
    writeObject(writer, value, depth);
  } else if (typeof value === 'boolean') {
    writer.bool(value);
  } else if (typeof value === 'bigint') {
    writer.int(value);
  } else if (value === null || value === undefined) {
    writer.nil();
  } else {
    throw new UnsupportedValue(`is a ${typeof value}`);
  }
}

function writeNumber(writer: Writer, value: number): void {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
    writer.int(value);
  } else {
    writer.float(value);
  }
}

function writeObject(writer: Writer, value: object, depth: number): void {
  if (depth > DEEPEST) {
    throw new UnsupportedValue('is nested too deeply, or contains itself');
  }
  if (Array.isArray(value)) {
    writeItems(writer, value, depth);
  } else if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
    writer.bin(new Uint8Array(value));
  } else if (ArrayBuffer.isView(value)) {
    writeElements(writer, value);
  } else if (value instanceof Date) {
    writeDate(writer, value);
  } else {
    writeRecord(writer, value, depth);
  }
}

function writeItems(writer: Writer, items: readonly unknown[], depth: number): void {
  writer.array(items.length);
  let index = 0;
  try {
    for (; index < items.length; index += 1) {
      write(writer, items[index], depth + 1);
    }
  } catch (error) {
    throw located(error, `[${index}]`);
  }
}

/**
 * Writes a Uint8Array, a Uint8ClampedArray or a DataView as bytes. Python gets any other typed array as a list of its
 * numbers.
 */
function writeElements(writer: Writer, array: ArrayBufferView): void {
  if (array instanceof Uint8Array || array instanceof Uint8ClampedArray || array instanceof DataView) {
    writer.bin(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return;
  }
  const numbers = array as NumberArray;
  writer.array(numbers.length);
  if (numbers instanceof Float64Array) {
    for (const number of numbers) {
      writer.float(number);
    }
  } else if (/^Float(16|32)Array$/.test(numbers.constructor.name)) {
    for (const number of numbers as Float32Array) {
      writer.float32(number);
    }
  } else {
    for (const number of numbers) {
      writer.int(number);
    }
  }
}

function writeRecord(writer: Writer, record: object, depth: number): void {
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
  writer.map(count);
  let key = '';
  try {
    for (key of keys) {
      const part = fields[key];
      if (part !== undefined) {
        writer.str(key);
        write(writer, part, depth + 1);
      }
    }
  } catch (error) {
    throw located(error, `.${key}`);
  }
}

function writeDate(writer: Writer, value: Date): void {
  if (Number.isNaN(value.getTime())) {
    throw new UnsupportedValue('is no valid date');
  }
  writer.ext(TIMESTAMP, encodeTimestampExtension(value) ?? new Uint8Array());
}

/** Returns the same error with one more step in its path. */
function located(error: unknown, step: string): unknown {
  if (error instanceof UnsupportedValue && error.path.length < LONGEST_PATH) {
    error.path = step + error.path;
  }
  return error;
}
