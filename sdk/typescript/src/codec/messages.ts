import { decode as decodeMessagePack } from '@msgpack/msgpack';
import { BadRequest, InternalError, RateLimited, REQUEST_ERRORS, RequestError, UnsupportedVersion } from '../errors.ts';
import { STRUCTS } from '../generated/shapes.ts';
import { PROTOCOL_VERSION } from '../limits.ts';
import type { Draft, Message, MessageName } from '../messages.ts';
import type { Field, Shape, Struct } from './shapes.ts';
import { narrow } from './values.ts';
import { Writer } from './writer.ts';

/** The media type of all requests. */
export const MSGPACK = 'application/msgpack';

const RETRYABLE_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Serialize a message. What is left out of it takes its default. */
export function encode<K extends MessageName>(name: K, message: Draft<K>): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
  writeStruct(writer, structOf(name), message, name);
  return writer.view().slice();
}

/**
 * Parse a message. Unknown fields are ignored, missing ones take their defaults.
 *
 * @throws BadRequest when the body is not such a message; the text names the field.
 * @throws UnsupportedVersion when it speaks a newer protocol.
 */
export function decode<K extends MessageName>(name: K, body: Uint8Array): Message<K> {
  let raw: unknown;
  try {
    raw = decodeMessagePack(body, { useBigInt64: true });
  } catch (error) {
    throw new BadRequest(`not a valid ${name}: ${(error as Error).message}`);
  }
  const version = (raw as { v?: unknown } | null)?.v;
  if (typeof version === 'number' && version > PROTOCOL_VERSION) {
    throw new UnsupportedVersion(`protocol ${version} is newer than ${PROTOCOL_VERSION}: update this side`);
  }
  return readStruct(structOf(name), raw, name) as Message<K>;
}

/** Make the error from an error answer; a body that is none of ours is quoted. */
export function decodeError(body: Uint8Array, status: number): RequestError {
  // Whoever says 429: a gateway before the master paces as it does.
  const Unknown = status === 429 ? RateLimited : RETRYABLE_STATUS.has(status) ? InternalError : RequestError;
  let reply: Message<'ErrorReply'>;
  try {
    reply = decode('ErrorReply', body);
  } catch {
    const text = new TextDecoder().decode(body.subarray(0, 200));
    return new Unknown(`HTTP status ${status}, not from a Cloud Parallelizer master: ${JSON.stringify(text)}`);
  }
  const Kind = REQUEST_ERRORS.get(reply.code) ?? Unknown;
  return new Kind(reply.message, reply.retry_after_s ?? undefined);
}

function structOf(name: string): Struct {
  const struct = STRUCTS[name];
  if (struct === undefined) {
    throw new TypeError(`there is no message ${name}`);
  }
  return struct;
}

function writeStruct(writer: Writer, struct: Struct, message: unknown, where: string): void {
  const values = message as Record<string, unknown>;
  if (struct.array) {
    writer.array(struct.fields.length);
  } else {
    writer.map(struct.fields.length);
  }
  for (const field of struct.fields) {
    if (!struct.array) {
      writer.str(field.name);
    }
    write(writer, field.shape, values[field.name] ?? defaultOf(field), `${where}.${field.name}`);
  }
}

function write(writer: Writer, shape: Shape, value: unknown, where: string): void {
  if (typeof shape === 'string') {
    writeScalar(writer, shape, value, where);
  } else if ('struct' in shape) {
    writeStruct(writer, structOf(shape.struct), must(value, 'object', where), where);
  } else if ('nullable' in shape) {
    if (value === null || value === undefined) {
      writer.nil();
    } else {
      write(writer, shape.nullable, value, where);
    }
  } else if ('structs' in shape) {
    const tagged = must(value, 'object', where) as Record<string, string>;
    writeStruct(writer, structOf(shape.structs[tagged[shape.tag] ?? ''] ?? where), tagged, where);
  } else if ('map' in shape) {
    const entries = Object.entries(must(value, 'object', where));
    writer.map(entries.length);
    for (const [key, part] of entries) {
      writer.str(key);
      write(writer, shape.map, part, `${where}.${key}`);
    }
  } else {
    const items = must(value, 'object', where) as unknown[];
    writer.array(items.length);
    for (const [index, item] of items.entries()) {
      write(writer, 'list' in shape ? shape.list : (shape.tuple[index] ?? 'int'), item, where);
    }
  }
}

function writeScalar(writer: Writer, shape: Shape & string, value: unknown, where: string): void {
  if (shape === 'int') {
    writer.int(integer(value, where));
  } else if (shape === 'float') {
    writer.float(must(value, 'number', where));
  } else if (shape === 'bool') {
    writer.bool(must(value, 'boolean', where));
  } else if (shape === 'str') {
    writer.str(must(value, 'string', where));
  } else {
    writer.bin(bytes(value, where));
  }
}

function readScalar(shape: Shape & string, raw: unknown, where: string): unknown {
  switch (shape) {
    case 'int':
      return integer(narrow(raw), where);
    case 'float':
      return typeof raw === 'bigint' ? Number(raw) : must(raw, 'number', where);
    case 'bool':
      return must(raw, 'boolean', where);
    case 'str':
      return must(raw, 'string', where);
    default:
      return bytes(raw, where);
  }
}

function integer(value: unknown, where: string): number | bigint {
  if (typeof value !== 'bigint' && !Number.isSafeInteger(value)) {
    throw new BadRequest(`${where} is ${String(value)}, and must be an integer`);
  }
  return value as number | bigint;
}

function bytes(value: unknown, where: string): Uint8Array {
  if (!(value instanceof Uint8Array)) {
    throw new BadRequest(`${where} must be bytes, a Uint8Array`);
  }
  return value;
}

interface Kinds {
  number: number;
  boolean: boolean;
  string: string;
  object: object;
}

function must<K extends keyof Kinds>(value: unknown, kind: K, where: string): Kinds[K] {
  if (typeof value !== kind || value === null) {
    throw new BadRequest(`${where} is ${String(value)}, and must be of type ${kind}`);
  }
  return value as Kinds[K];
}

/** In the document, as in all JSON of the protocol, bytes are a text in base64. */
function defaultOf({ shape, default: value }: Field): unknown {
  return shape === 'bytes' && typeof value === 'string' ? new Uint8Array(Buffer.from(value, 'base64')) : value;
}

function readStruct(struct: Struct, raw: unknown, where: string): unknown {
  const source = must(raw, 'object', where) as Record<string, unknown>;
  if (Array.isArray(raw) !== struct.array) {
    throw new BadRequest(`not a valid ${where}: it is ${struct.array ? 'no array' : 'an array'}`);
  }
  const parts = struct.fields.map((field): [string, unknown] => {
    const { name, shape } = field;
    const part = source[name];
    if (part !== undefined) {
      return [name, read(shape, part, `${where}.${name}`)];
    }
    if (!('default' in field)) {
      throw new BadRequest(`not a valid ${where}: ${name} is missing`);
    }
    return [name, structuredClone(defaultOf(field))];
  });
  return struct.array ? parts.map(([, part]) => part) : Object.fromEntries(parts);
}

function read(shape: Shape, raw: unknown, where: string): unknown {
  if (typeof shape === 'string') {
    return readScalar(shape, raw, where);
  }
  if ('struct' in shape) {
    return readStruct(structOf(shape.struct), raw, where);
  }
  if ('nullable' in shape) {
    return raw === null ? null : read(shape.nullable, raw, where);
  }
  if ('structs' in shape) {
    const tag = (must(raw, 'object', where) as Record<string, string>)[shape.tag] ?? '';
    const name = shape.structs[tag];
    if (name === undefined) {
      throw new BadRequest(`not a valid ${where}: there is no ${shape.tag} ${tag}`);
    }
    return readStruct(structOf(name), raw, where);
  }
  if ('map' in shape) {
    const entries = Object.entries(must(raw, 'object', where));
    return Object.fromEntries(entries.map(([key, part]) => [key, read(shape.map, part, `${where}.${key}`)]));
  }
  if (!Array.isArray(raw)) {
    throw new BadRequest(`not a valid ${where}: it is no array`);
  }
  return raw.map((item, index) => read('list' in shape ? shape.list : (shape.tuple[index] ?? 'int'), item, where));
}
