// Seals, like cloudpar_protocol/seals.py: HMAC-SHA-256, cut to 16 bytes, by the account's key.

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { SealBroken } from './errors.ts';
import type { Draft, Message } from './messages.ts';
import type { TaskResult } from './package.ts';

export const SEAL_BYTES = 16;

/** In place of a larger payload stands its BLAKE2b digest. */
const LARGE_BYTES = 64 * 1024;

/** Of a sealed package's id; those of others begin with a hexadecimal digit. */
const SEALED = 's';

type Code = Pick<Message<'TaskCode'>, 'hash' | 'reference'>;

/** How task code is called, and with what: all that its seal is on besides its hash. */
export interface Calling {
  readonly call: string;
  readonly codec: string;
  readonly python: string;
  readonly tasks: number;
  /** Start and step, of range data. */
  readonly range?: readonly [number | bigint, number | bigint] | undefined;
}

/** The id of the sealed package that an account starts under a key. */
export function sealedPackageId(accountId: string, idempotencyKey: string): string {
  return SEALED + createHash('sha256').update(`${accountId}#${idempotencyKey}`).digest('hex').slice(0, 31);
}

/** The seals of one package: they are made and verified by who has the account's key. */
export class Seals {
  readonly packageId: string;
  readonly #key: Uint8Array;

  constructor(key: Uint8Array, packageId: string) {
    this.#key = key;
    this.packageId = packageId;
  }

  #seal(parts: readonly unknown[], payload: Uint8Array = new Uint8Array()): Uint8Array {
    const [kind, ...rest] = parts;
    const large = payload.length > LARGE_BYTES;
    const text = [kind, this.packageId, ...(large ? ['large'] : []), ...rest].join('\0');
    const short = large ? createHash('blake2b512').update(payload).digest() : payload;
    return createHmac('sha256', this.#key).update(text).update(short).digest().subarray(0, SEAL_BYTES);
  }

  /** Of the task code, by its hash, and of how it is called; range data is part of it. */
  code({ hash, reference }: Code, { call, codec, python, tasks, range }: Calling): Uint8Array {
    const origin = range === undefined ? 'items' : `range ${range[0]} ${range[1]}`;
    return this.#seal(['code', reference === null ? 'pickle' : 'reference', hash, call, codec, python, tasks, origin]);
  }

  /** Of one task's data. */
  data(index: number, item: Uint8Array): Uint8Array {
    return this.#seal(['data', index, ''], item);
  }

  /** Of what a task came to. */
  result({ index, outcome, data }: Pick<TaskResult, 'index' | 'outcome' | 'data'>): Uint8Array {
    return this.#seal(['result', index, outcome, ''], data ?? undefined);
  }

  /** Of where a result lies, by the master for a worker that knows no seals. */
  place(index: number, outcome: string, [key, size, offset]: Draft<'BlobRef'>): Uint8Array {
    return this.#seal(['place', index, outcome, offset, size, key]);
  }

  /** A result as it came, or with the error that says that it is not to be read. */
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
      `the result of task ${index} of package ${this.packageId} ${lacks}: it was not read. Somebody changed it, it is ` +
        "another task's, or the master's secret is a new one since: run the task again, in a new pool, and if it comes " +
        "again see what may write to the master's storage",
    );
    return { ...result, broken };
  }
}

function same(seal: Uint8Array | null, expected: Uint8Array): boolean {
  return seal !== null && seal.length === expected.length && timingSafeEqual(seal, expected);
}
