import type { Shape } from '../src/codec/shapes.ts';
import { STRUCTS } from '../src/generated/shapes.ts';
import type { Draft, MessageName } from '../src/messages.ts';

const WIDE = /(?<=[[:,])-?\d{16,}(?=[\],}])/g;

/**
 * Reads a message from the protocol's JSON, in which bytes are base64 and integers may have more digits than a number.
 */
export function fromJson<K extends MessageName>(name: K, json: string): Draft<K> {
  const raw: unknown = JSON.parse(json.replace(WIDE, '"$&"'));
  return value({ struct: name }, raw) as Draft<K>;
}

function value(shape: Shape, raw: unknown): unknown {
  if (raw === null) {
    return null;
  }
  if (typeof shape === 'string') {
    return scalar(shape, raw);
  }
  if ('nullable' in shape) {
    return value(shape.nullable, raw);
  }
  if ('structs' in shape) {
    return value({ struct: shape.structs[(raw as Record<string, string>)[shape.tag] ?? ''] ?? '' }, raw);
  }
  if ('struct' in shape) {
    const { array, fields } = STRUCTS[shape.struct] ?? { array: false, fields: [] };
    const given = raw as Record<string, unknown>;
    const parts = fields // an earlier release may know fewer
      .filter(({ name }) => name in given)
      .map((field) => [field.name, value(field.shape, given[field.name])]);
    return array ? parts.map(([, part]) => part) : Object.fromEntries(parts);
  }
  if ('map' in shape) {
    return Object.fromEntries(Object.entries(raw as object).map(([key, part]) => [key, value(shape.map, part)]));
  }
  const items = raw as unknown[];
  return items.map((item, index) => value('list' in shape ? shape.list : (shape.tuple[index] ?? 'int'), item));
}

function scalar(shape: Shape & string, raw: unknown): unknown {
  if (shape === 'bytes') {
    return new Uint8Array(Buffer.from(raw as string, 'base64'));
  }
  if (shape === 'int' && typeof raw === 'string') {
    const wide = BigInt(raw);
    return Number.isSafeInteger(Number(wide)) ? Number(wide) : wide;
  }
  return raw;
}
