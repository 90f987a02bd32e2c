import type { Connection } from './connection.ts';
import { CloudparError, RequestError } from './errors.ts';
import type { Link } from './messages.ts';
import type { Fetch, News, Package, TaskResult } from './package.ts';

/** Neighbouring results are fetched together up to this size. */
const SPAN_BYTES = 16 << 20;
const AT_ONCE = 4;

/** Group results whose payloads lie one after the other in one blob. */
export function spans(fetches: readonly Fetch[]): Fetch[][] {
  const groups: Fetch[][] = [];
  let size = 0;
  for (const fetch of [...fetches].sort(byPlace)) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    const follows = last !== undefined && last.key === fetch.key && last.offset + last.size === fetch.offset;
    if (group !== undefined && follows && size + fetch.size <= SPAN_BYTES) {
      group.push(fetch);
      size += fetch.size;
    } else {
      groups.push([fetch]);
      size = fetch.size;
    }
  }
  return groups;
}

function byPlace(one: Fetch, other: Fetch): number {
  return one.key === other.key ? one.offset - other.offset : one.key < other.key ? -1 : 1;
}

/** Large results, fetched from where the workers put them: neighbours in one request, several requests at a time. */
export class Downloads {
  readonly #connection: Connection;
  readonly #session: string;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(connection: Connection, session: string) {
    this.#connection = connection;
    this.#session = session;
  }

  /**
   * Fetch what a status could only name.
   *
   * @param arrived Takes the results of each request, or the error that ends them all.
   */
  begin(from: Package, news: News, arrived: (results: readonly TaskResult[] | CloudparError) => void): void {
    for (const span of spans(news.fetches)) {
      void this.#fetch(from, span, news).then(arrived, (error: unknown) =>
        arrived(error instanceof CloudparError ? error : new CloudparError(`a download failed: ${String(error)}`)),
      );
    }
  }

  async #fetch(from: Package, span: readonly Fetch[], news: News): Promise<TaskResult[]> {
    const [first] = span;
    const end = span.reduce((place, { offset, size }) => Math.max(place, offset + size), 0);
    if (first === undefined || first.offset === end) {
      return span.map(({ result }) => ({ ...result, data: new Uint8Array() }));
    }
    await this.#turn();
    try {
      const data = await this.#get(from, first.key, first.offset, end, news);
      return span.map(({ result, offset, size }) => {
        const start = offset - first.offset;
        return { ...result, data: data.subarray(start, start + size) };
      });
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #turn(): Promise<void> {
    if (this.#running >= AT_ONCE) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#running += 1;
  }

  async #get(from: Package, key: string, start: number, end: number, news: News): Promise<Uint8Array> {
    const link = news.links[key];
    if (link !== undefined) {
      try {
        return await this.#connection.get(link, start, end);
      } catch (error) {
        if (!(error instanceof RequestError)) {
          throw error;
        }
      }
    }
    // The link may have grown old: this computer may have slept.
    return this.#connection.get(await this.#freshLink(from, key, news.page), start, end);
  }

  async #freshLink(from: Package, key: string, page: number): Promise<Link> {
    const packages = [{ package_id: from.id, cursor: page }];
    const reply = await this.#connection.call('await_tasks', { session: `${this.#session}-link`, packages });
    const link = reply.packages.map(({ links }) => links[key]).find((each) => each !== undefined);
    if (link === undefined) {
      throw new CloudparError(`the master names no link for the results in ${key}: ${reply.missing[from.id] ?? ''}`);
    }
    return link;
  }
}
