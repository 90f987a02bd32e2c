import type { Connection } from './connection.ts';
import { CloudparError, RequestError } from './errors.ts';
import type { Draft, Message, Parts } from './messages.ts';
import { completion, cut } from './multipart.ts';
import { type Blob, checksum } from './packing.ts';

/** How many parts of one upload are sent at a time. */
const AT_A_TIME = 4;

/**
 * Uploads task data: whole, or in parts if it is large and the store accepts parts.
 *
 * @throws CloudparError when the master or the store refuses it, or does not answer.
 * @throws the signal's reason once it is aborted.
 */
export async function upload(
  connection: Connection,
  { body, crc32: whole }: Blob,
  signal?: AbortSignal,
): Promise<Draft<'BlobData'>> {
  const parts = cut(body);
  const parts_crc32: number[] = [];
  for (const part of parts) {
    parts_crc32.push(await checksum(part, signal));
  }
  const wanted = { kind: 'data', size: body.length, crc32: whole, parts_crc32 } as const;
  const first = await prepare(connection, wanted, signal);
  const data: Draft<'BlobData'> = { type: 'blob', blob: [first.key, body.length, 0] };
  let { link } = first;
  if (first.parts !== null) {
    const again = { ...wanted, key: first.key };
    try {
      await new PartedUpload(connection, again, parts, first.parts, signal).run();
      return data;
    } catch (error) {
      if (!isRefusal(error)) {
        throw error;
      }
      // The store also refuses if it has combined the parts and its answer was lost. It then has the payload, and `put`
      // below takes its refusal of a second upload for success.
      ({ link } = await prepare(connection, { ...again, parts_crc32: [] }, signal));
    }
  }
  if (link !== null) {
    await connection.put(link, body, signal);
  }
  return data;
}

async function prepare(
  connection: Connection,
  wanted: Draft<'Upload'>,
  signal: AbortSignal | undefined,
): Promise<Message<'PreparedUpload'>> {
  const [prepared] = (await connection.call('prepare_uploads', { uploads: [wanted] }, { signal })).uploads;
  if (prepared === undefined) {
    throw new CloudparError('the master prepared no upload: please report this');
  }
  return prepared;
}

/**
 * Uploads one payload in parts. A link may expire while others are used. So whenever one is refused, all links are
 * renewed, and parts that the store has are not sent again. If no further part can be stored with the new links, a
 * second refusal ends the upload.
 */
class PartedUpload {
  readonly #connection: Connection;
  readonly #wanted: Draft<'Upload'>;
  readonly #bodies: readonly Uint8Array<ArrayBuffer>[];
  readonly #etags = new Map<number, string>();
  readonly #signal: AbortSignal | undefined;
  #parts: Parts;

  constructor(
    connection: Connection,
    wanted: Draft<'Upload'>,
    bodies: readonly Uint8Array<ArrayBuffer>[],
    parts: Parts,
    signal: AbortSignal | undefined,
  ) {
    this.#signal = signal;
    this.#connection = connection;
    this.#wanted = wanted;
    this.#bodies = bodies;
    this.#parts = parts;
  }

  async run(): Promise<void> {
    let thereBefore = -1;
    for (;;) {
      try {
        await this.#sendMissing();
        await this.#connection.complete(this.#parts.complete, this.#list(), this.#signal);
        return;
      } catch (error) {
        if (!isRefusal(error) || this.#etags.size <= thereBefore) {
          throw error;
        }
        const { parts } = await prepare(
          this.#connection,
          { ...this.#wanted, upload_id: this.#parts.upload_id },
          this.#signal,
        );
        if (parts === null) {
          throw error;
        }
        this.#parts = parts;
        thereBefore = this.#etags.size;
      }
    }
  }

  async #sendMissing(): Promise<void> {
    const missing = [...this.#bodies.keys()].filter((number) => !this.#etags.has(number));
    const errors: unknown[] = [];
    const sendEach = async () => {
      for (let number = missing.shift(); number !== undefined && errors.length === 0; number = missing.shift()) {
        await this.#send(number).catch((error) => errors.push(error));
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, sendEach));
    if (errors.length > 0) {
      throw errors.find((error) => !isRefusal(error)) ?? errors[0];
    }
  }

  async #send(number: number): Promise<void> {
    const [link, body] = [this.#parts.links[number], this.#bodies[number]];
    if (link === undefined || body === undefined) {
      throw new CloudparError(`the master prepared ${this.#parts.links.length} parts: please report this`);
    }
    this.#etags.set(number, await this.#connection.put(link, body, this.#signal));
  }

  #list(): Uint8Array<ArrayBuffer> {
    const checksums = this.#wanted.parts_crc32 ?? [];
    return completion(
      this.#bodies.map((_, number) => ({ etag: this.#etags.get(number) ?? '', crc32: checksums[number] ?? 0 })),
    );
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof RequestError && !error.retryable;
}
