/** Messages of released versions are understood, and the same bytes are written. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decode, decodeWithBreaks, encode } from '../../src/codec/messages.ts';
import { STRUCTS } from '../../src/generated/shapes.ts';
import type { MessageName } from '../../src/messages.ts';
import { fromJson } from '../vector-json.ts';

interface Vector {
  name: string;
  type: MessageName;
  json: string;
  msgpack: string;
}

function read(release: string): Vector[] {
  const file = new URL(`../../../protocol/vectors/v${release}.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { vectors: Vector[] }).vectors;
}

const vectors = read('0.4.0');

function unhex(digits: string): Uint8Array {
  return new Uint8Array(Buffer.from(digits, 'hex'));
}

describe('golden vectors', () => {
  test('there is one of every message', () => {
    expect(new Set(vectors.map(({ type }) => type))).toEqual(new Set(Object.keys(STRUCTS)));
    expect(vectors.length).toBeGreaterThan(200);
  });

  test.each(vectors)('$name is read as its JSON says', ({ type, json, msgpack }) => {
    expect(decode(type, unhex(msgpack))).toEqual(fromJson(type, json));
  });

  test.each(vectors)('$name is read the same with breaks', async ({ type, json, msgpack }) => {
    expect(await decodeWithBreaks(type, unhex(msgpack))).toEqual(fromJson(type, json));
  });

  test.each(vectors)('$name is written to the byte', ({ type, json, msgpack }) => {
    expect(Buffer.from(encode(type, fromJson(type, json))).toString('hex')).toBe(msgpack);
  });
});

describe('golden vectors of earlier releases', () => {
  test.each(['0.1.0', '0.2.0', '0.3.0'])('%s: each is read, and newer fields take their defaults', (release) => {
    for (const { type, json, msgpack } of read(release)) {
      expect(decode(type, unhex(msgpack))).toEqual(decode(type, encode(type, fromJson(type, json))));
    }
  });
});
