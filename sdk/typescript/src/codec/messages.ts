import { Decoder } from '@msgpack/msgpack';
import { BadRequest, InternalError, RateLimited, REQUEST_ERRORS, RequestError, UnsupportedVersion } from '../errors.ts';
import { Breaks } from '../event-loop.ts';
import { STRUCTS } from '../generated/shapes.ts';
import { PROTOCOL_VERSION } from '../limits.ts';
import type { Draft, Message, MessageName } from '../messages.ts';
import { takeOut } from './long-lists.ts';
import type { Field, Shape, Struct } from './shapes.ts';
import { narrow } from './values.ts';
import { Writer } from './writer.ts';

/** The media type of all requests. */
export const MSGPACK = 'application/msgpack';

const RETRYABLE_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Serializes a message. A field that is left out gets its default value. */
export function encode<K extends MessageName>(name: K, message: Draft<K>): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
  writeStruct(writer, structOf(name), message, name);
  return writer.view().slice();
}

/**
 * Parses a message. Unknown fields are ignored, and missing fields get their default values.
 *
 * @throws BadRequest when the body is not such a message; the text names the field.
 * @throws UnsupportedVersion when the message is of a newer protocol.
 */
export function decode<K extends MessageName>(name: K, body: Uint8Array): Message<K> {
  let raw: unknown;
  try {
    raw = new Decoder({ useBigInt64: true }).decode(body);
  } catch (error) {
    throw malformed(name, error);
  }
  const version = (raw as { v?: unknown } | null)?.v;
  if (typeof version === 'number' && version > PROTOCOL_VERSION) {
    throw new UnsupportedVersion(`protocol ${version} is newer than ${PROTOCOL_VERSION}: update this side`);
  }
  return readStruct(structOf(name), raw, name) as Message<K>;
}

/** Does the same as `decode`, for messages that may have many results: the event loop runs other work in between. */
export async function decodeWithBreaks<K extends MessageName>(name: K, body: Uint8Array): Promise<Message<K>> {
  const breaks = new Breaks();
  const { rest, lists } = takeOut(structOf(name), body);
  const message = decode(name, rest);
  for (const { path, item, items } of lists) {
    const where = `${name}.${path.join('.')}`;
    const found: unknown[] = [];
    try {
      for (const raw of new Decoder({ useBigInt64: true }).decodeMulti(items)) {
        found.push(readStruct(item, raw, where));
        if (breaks.isDue()) {
          await breaks.take();
        }
      }
    } catch (error) {
      throw error instanceof BadRequest ? error : malformed(where, error);
    }
    const parent = path.slice(0, -1).reduce((part, key) => part[key] as Parts, message as Parts);
    parent[path.at(-1) ?? ''] = found;
  }
  return message;
}

type Parts = Record<string | number, unknown>;

/** Returns the error for bytes that are not MessagePack. */
function malformed(where: string, error: unknown): BadRequest {
  return new BadRequest(`not a valid ${where}: ${(error as Error).message}`);
}

/** Returns the error that an error answer contains. If the body has another form, the error quotes it. */
export function decodeError(body: Uint8Array, status: number): RequestError {
  // A gateway in front of the master may also send a 429, because it limits the rate as the master does.
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

function readScalar(shape: Shape & string, raw: unknown, where: string, name: string): unknown {
  switch (shape) {
    case 'int':
      return integer(narrow(raw), where, name);
    case 'float':
      return typeof raw === 'bigint' ? Number(raw) : must(raw, 'number', where, name);
    case 'bool':
      return must(raw, 'boolean', where, name);
    case 'str':
      return must(raw, 'string', where, name);
    default:
      return bytes(raw, where, name);
  }
}

function integer(value: unknown, where: string, name = ''): number | bigint {
  if (typeof value !== 'bigint' && !Number.isSafeInteger(value)) {
    throw new BadRequest(`${within(where, name)} is ${String(value)}, and must be an integer`);
  }
  return value as number | bigint;
}

function bytes(value: unknown, where: string, name = ''): Uint8Array {
  if (!(value instanceof Uint8Array)) {
    throw new BadRequest(`${within(where, name)} must be bytes, a Uint8Array`);
  }
  return value;
}

interface Kinds {
  number: number;
  boolean: boolean;
  string: string;
  object: object;
}

function must<K extends keyof Kinds>(value: unknown, kind: K, where: string, name = ''): Kinds[K] {
  if (typeof value !== kind || value === null) {
    throw new BadRequest(`${within(where, name)} is ${String(value)}, and must be of type ${kind}`);
  }
  return value as Kinds[K];
}

/**
 * Joins the names of a value and of a part of it. Only errors need this: joining names for each of a million results
 * would take longer than reading the results.
 */
function within(where: string, name: string): string {
  return name === '' ? where : `${where}.${name}`;
}

/** Returns a field's default. It comes from docs/openapi.json, where bytes are text in base64. */
function defaultOf({ shape, default: value }: Field): unknown {
  return shape === 'bytes' && typeof value === 'string' ? new Uint8Array(Buffer.from(value, 'base64')) : value;
}

function readStruct(struct: Struct, raw: unknown, where: string): unknown {
  const source = must(raw, 'object', where);
  if (Array.isArray(raw) !== struct.array) {
    throw new BadRequest(`not a valid ${where}: it is ${struct.array ? 'no array' : 'an array'}`);
  }
  if (struct.array) {
    return struct.fields.map((field, index) => readField(field, (source as unknown[])[index], where));
  }
  const parts = source as Record<string, unknown>;
  return Object.fromEntries(struct.fields.map((field) => [field.name, readField(field, parts[field.name], where)]));
}

function readField(field: Field, part: unknown, where: string): unknown {
  if (part !== undefined) {
    return read(field.shape, part, where, field.name);
  }
  if (!('default' in field)) {
    throw new BadRequest(`not a valid ${where}: ${field.name} is missing`);
  }
  return structuredClone(defaultOf(field));
}

function read(shape: Shape, raw: unknown, where: string, name = ''): unknown {
  if (typeof shape === 'string') {
    return readScalar(shape, raw, where, name);
  }
  if ('nullable' in shape) {
    return raw === null ? null : read(shape.nullable, raw, where, name);
  }
  const place = within(where, name);
  if ('struct' in shape) {
    return readStruct(structOf(shape.struct), raw, place);
  }
  if ('structs' in shape) {
    const tag = (must(raw, 'object', place) as Record<string, string>)[shape.tag] ?? '';
    const chosen = shape.structs[tag];
    if (chosen === undefined) {
      throw new BadRequest(`not a valid ${place}: there is no ${shape.tag} ${tag}`);
    }
    return readStruct(structOf(chosen), raw, place);
  }
  if ('map' in shape) {
    const entries = Object.entries(must(raw, 'object', place));
    return Object.fromEntries(entries.map(([key, part]) => [key, read(shape.map, part, place, key)]));
  }
  if (!Array.isArray(raw)) {
    throw new BadRequest(`not a valid ${place}: it is no array`);
  }
  return raw.map((item, index) => read('list' in shape ? shape.list : (shape.tuple[index] ?? 'int'), item, place));
}
