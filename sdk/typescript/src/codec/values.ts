import { Decoder } from '@msgpack/msgpack';
import { SerializationError } from '../errors.ts';

/** All values share one decoder: creating one takes longer than decoding a small value. */
const DECODER = new Decoder({ useBigInt64: true });

/**
 * Decodes the value that a task returned. An integer becomes a number if this loses no digits, otherwise a bigint.
 *
 * @throws SerializationError when the data is not MessagePack, or JavaScript cannot hold the value.
 */
export function readValue(data: Uint8Array): unknown {
  try {
    return narrow(DECODER.decode(data));
  } catch (error) {
    throw new SerializationError(
      `the result cannot be rebuilt here: ${(error as Error).message}; let the function return dicts with texts or ` +
        'numbers as keys, lists, texts, bytes, numbers, dates and None',
    );
  }
}

/**
 * Replaces bigints by numbers where this loses no digits. Bigints inside arrays and plain objects are replaced in
 * place. They are there because the library makes bigints of all integers that are encoded in 64 bits.
 */
export function narrow(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      value[index] = narrow(value[index]);
    }
  } else if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    const record = value as Record<string, unknown>;
    for (const key of Object.keys(record)) {
      record[key] = narrow(record[key]);
    }
  }
  return value;
}
