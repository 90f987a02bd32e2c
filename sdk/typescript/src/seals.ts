// Makes seals, like cloudpar_protocol/seals.py: HMAC-SHA-256, cut to 16 bytes, with the account's key.

import { createHash, createHmac } from 'node:crypto';
import { SealBroken } from './errors.ts';
import type { Draft, Message } from './messages.ts';
import type { TaskResult } from './package.ts';
import { Hmac } from './sha256.ts';

export const SEAL_BYTES = 16;

const TEXT = new TextEncoder();

/** A payload above this size is sealed by its BLAKE2b digest. */
const LARGE_BYTES = 64 * 1024;

/** Messages up to this size are hashed in JavaScript, because a call of node:crypto takes longer than such a hash. */
const SHORT_BYTES = 256;

/** The first character of a sealed package's id; other ids start with a hexadecimal digit. */
const SEALED = 's';

type Code = Pick<Message<'TaskCode'>, 'hash' | 'reference'>;

/** How task code is called. The seal of task code covers this and the hash of the code. */
export interface Calling {
  readonly call: string;
  readonly codec: string;
  readonly python: string;
  readonly tasks: number;
  /** Start and step of range data. */
  readonly range?: readonly [number | bigint, number | bigint] | undefined;
}

/** The kinds of content that have a seal. */
type Kind = 'code' | 'data' | 'result' | 'place';

/** Returns the id of the sealed package that an account starts with this idempotency key. */
export function sealedPackageId(accountId: string, idempotencyKey: string): string {
  return SEALED + createHash('sha256').update(`${accountId}#${idempotencyKey}`).digest('hex').slice(0, 31);
}

/** Returns whether a package is sealed. The package's id shows this, so it cannot be changed. */
export function isSealed(packageId: string): boolean {
  return packageId.startsWith(SEALED);
}

/** Makes and verifies the seals of one package with the account's key. */
export class Seals {
  readonly packageId: string;
  readonly #key: Uint8Array;
  readonly #short: Hmac;

  constructor(key: Uint8Array, packageId: string) {
    this.#key = key;
    this.#short = new Hmac(key, SHORT_BYTES);
    this.packageId = packageId;
  }

  #seal(
    kind: Kind,
    what: string,
    payload: Uint8Array = new Uint8Array(),
    target: Uint8Array = new Uint8Array(SEAL_BYTES),
    at = 0,
  ): Uint8Array {
    const large = payload.length > LARGE_BYTES;
    const text = `${kind}\0${this.packageId}\0${large ? 'large\0' : ''}${what}`;
    if (3 * text.length + payload.length <= SHORT_BYTES) {
      const { written } = TEXT.encodeInto(text, this.#short.message);
      this.#short.message.set(payload, written);
      this.#short.write(written + payload.length, target, at, SEAL_BYTES);
      return target;
    }
    const short = large ? createHash('blake2b512').update(payload).digest() : payload;
    const made = createHmac('sha256', this.#key).update(text).update(short).digest();
    target.set(made.subarray(0, SEAL_BYTES), at);
    return target;
  }

  /** The seal of the task code's hash and of how it is called, including range data. */
  code({ hash, reference }: Code, { call, codec, python, tasks, range }: Calling): Uint8Array {
    const data = range === undefined ? 'items' : `range ${range[0]} ${range[1]}`;
    return this.#seal(
      'code',
      [reference === null ? 'pickle' : 'reference', hash, call, codec, python, tasks, data].join('\0'),
    );
  }

  /** Returns the seal of one task's data. With `target`, the seal is written into that array at position `at`. */
  data(index: number, item: Uint8Array, target?: Uint8Array, at?: number): Uint8Array {
    return this.#seal('data', `${index}\0`, item, target, at);
  }

  /** The seal of a task's result: of its number, its outcome and its data. */
  result({ index, outcome, data }: Pick<TaskResult, 'index' | 'outcome' | 'data'>): Uint8Array {
    return this.#seal('result', `${index}\0${outcome}\0`, data ?? undefined);
  }

  /** Returns the seal of a result's place in a blob. The master makes such seals for workers that do not know seals. */
  place(index: number, outcome: string, [key, size, offset]: Draft<'BlobRef'>): Uint8Array {
    return this.#seal('place', [index, outcome, offset, size, key].join('\0'));
  }

  /** Verifies the seal of a result. Returns the result, with an error if it must not be read. */
  verified(result: TaskResult): TaskResult {
    const { index, outcome, data, seal, blob } = result;
    const good =
      data === null
        ? outcome !== 'ok'
        : same(seal, this.result(result)) || (blob !== null && same(seal, this.place(index, outcome, blob)));
    if (good) {
      return result;
    }
    const lacks = seal === null ? 'came without its seal' : 'is not what its seal says';
    const broken = new SealBroken(
      `the result of task ${index} of package ${this.packageId} ${lacks}: it was not read. It was changed, it is ` +
        "another task's, or the master has a new secret: run the task again in a new pool. If the error comes again, " +
        "check who can write to the master's storage",
    );
    return { ...result, broken };
  }
}

/** Whether two seals are equal, in constant time. A call of node:crypto takes ten times as long for so few bytes. */
function same(seal: Uint8Array | null, expected: Uint8Array): boolean {
  if (seal === null || seal.length !== expected.length) {
    return false;
  }
  let difference = 0;
  for (let index = 0; index < expected.length; index += 1) {
    difference |= (seal[index] as number) ^ (expected[index] as number);
  }
  return difference === 0;
}
