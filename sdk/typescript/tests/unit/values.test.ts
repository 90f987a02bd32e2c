import { decode } from '@msgpack/msgpack';
import { expect, test } from 'vitest';
import { writeValue } from '../../src/codec/value-writer.ts';
import { readValue } from '../../src/codec/values.ts';
import { Writer } from '../../src/codec/writer.ts';
import { SerializationError } from '../../src/errors.ts';

function written(value: unknown): Uint8Array {
  const writer = new Writer();
  writeValue(writer, value, 'the value');
  return writer.view().slice();
}

const LONG = Array.from({ length: 70_000 }, (_, index) => index);
const WIDE = Object.fromEntries(LONG.map((index) => [`key ${index}`, index]));

test.each([
  ['null', null],
  ['booleans', [true, false]],
  ['integers', [0, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER]],
  ['negative integers', [-1, -32, -33, -128, -129, -32_768, -32_769, -(2 ** 31), -(2 ** 31) - 1]],
  ['least integer', Number.MIN_SAFE_INTEGER],
  ['bigints', [2n ** 63n, 2n ** 64n - 1n, -(2n ** 63n)]],
  ['floats', [0.5, -0.1, 1e300, 5e-324, Number.POSITIVE_INFINITY, -0]],
  ['texts', ['', 'é漢😀', 'x'.repeat(31), 'x'.repeat(32), 'é'.repeat(16), 'x'.repeat(300), 'x'.repeat(70_000)]],
  ['bytes', [new Uint8Array(), new Uint8Array(256).fill(7), new Uint8Array(70_000)]],
  ['dates', [new Date(0), new Date(1_795_242_600_123), new Date(-1), new Date(2 ** 35 * 1000)]],
  ['nested', { a: [{ b: [[]] }, {}], 'key with space': null }],
  ['a long list', LONG],
  ['a wide object', WIDE],
  ['16 items', LONG.slice(0, 16)],
])('%s come back as they were', (_, value) => {
  expect(readValue(written(value))).toEqual(value);
  expect(decode(written(value), { useBigInt64: true })).toBeDefined();
});

test('a value is written in the shortest form that holds it', () => {
  expect(written(1n)).toEqual(written(1));
  expect(written(-(2n ** 31n))).toEqual(written(-(2 ** 31)));
  expect(written(1.0)).toEqual(new Uint8Array([1]));
  expect(written(undefined)).toEqual(written(null));
  expect(written({ a: undefined, b: 1 })).toEqual(written({ b: 1 }));
  expect(written(new Uint8Array([1, 2]).buffer)).toEqual(written(new Uint8Array([1, 2])));
  expect(written(Object.create(null))).toEqual(written({}));
});

test.each([
  ['Float64Array', new Float64Array([1, 0.1, -0]), [1, 0.1, -0]],
  ['Float32Array', new Float32Array([1, 0.5]), [1, 0.5]],
  ['Int8Array', new Int8Array([-1, 2]), [-1, 2]],
  ['Uint16Array', new Uint16Array([65_535]), [65_535]],
  ['Int32Array', new Int32Array([-70_000]), [-70_000]],
  ['BigInt64Array', new BigInt64Array([-1n, 2n ** 62n]), [-1, 2n ** 62n]],
  ['BigUint64Array', new BigUint64Array([2n ** 64n - 1n]), [2n ** 64n - 1n]],
])('a %s is a list of its numbers', (_, array, numbers) => {
  expect(readValue(written(array))).toEqual(numbers);
});

test('every number of a float array is a float, also one that is whole', () => {
  expect(written(new Float64Array([1]))).toEqual(new Uint8Array([0x91, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]));
  expect(written(new Float32Array([1]))).toEqual(new Uint8Array([0x91, 0xca, 0x3f, 0x80, 0, 0]));
});

test('buffers are written as bytes, and a view of a buffer as its part only', () => {
  const bytes = written(new Uint8Array([2, 3]));
  const { buffer } = new Uint8Array([1, 2, 3, 4]);
  expect(written(new DataView(buffer, 1, 2))).toEqual(bytes);
  expect(written(new Uint8ClampedArray(buffer, 1, 2))).toEqual(bytes);
  expect(written(Buffer.from(buffer, 1, 2))).toEqual(bytes);
  const shared = new SharedArrayBuffer(2);
  new Uint8Array(shared).set([2, 3]);
  expect(written(shared)).toEqual(bytes);
});

class Point {
  x = 1;
}

function ring(): unknown[] {
  const list: unknown[] = [];
  list.push(list);
  return list;
}

test.each([
  ['the value is a function', () => () => 1],
  ['the value.a[1] is a symbol', () => ({ a: [1, Symbol('s')] })],
  ['the value[0] is an instance of Point', () => [new Point()]],
  ['the value is an instance of Map', () => new Map([[1, 2]])],
  ['the value is an instance of Set', () => new Set([1])],
  ['the value is 18446744073709551616, which has more than 64 bits', () => 2n ** 64n],
  ['the value[0] is -9223372036854775809, which has more than 64 bits', () => [-(2n ** 63n) - 1n]],
  ['the value is no valid date', () => new Date('never')],
  ['is nested too deeply, or contains itself', ring],
])('%s: refused', (text, make) => {
  expect(() => written(make())).toThrow(SerializationError);
  expect(() => written(make())).toThrow(text);
  expect(() => written(make())).toThrow('MessagePack does not hold');
});

test('a result that JavaScript cannot hold says so', () => {
  const listAsKey = new Uint8Array([0x81, 0x90, 0x01]);
  expect(() => readValue(listAsKey)).toThrow(SerializationError);
  expect(() => readValue(listAsKey)).toThrow(/cannot be rebuilt here/);
  expect(() => readValue(new Uint8Array([0xc1]))).toThrow(SerializationError);
  const prototype = written({ ['__proto__']: 1 });
  expect(() => readValue(prototype)).toThrow(SerializationError);
});

test('keys may be numbers', () => {
  expect(readValue(new Uint8Array([0x81, 0x07, 0x01]))).toEqual({ 7: 1 });
});
