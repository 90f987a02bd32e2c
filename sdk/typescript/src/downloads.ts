import type { Connection } from './connection.ts';
import { CloudparError, RequestError } from './errors.ts';
import type { Link } from './messages.ts';
import { type LargeResult, type News, type Package, packageError, type TaskResult } from './package.ts';

/** Adjacent results in a blob are downloaded together up to this size. */
const SPAN_BYTES = 16 << 20;
const AT_ONCE = 4;

/** Groups results whose payloads follow each other in one blob. */
export function spans(fetches: readonly LargeResult[]): LargeResult[][] {
  const groups: LargeResult[][] = [];
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

function byPlace(one: LargeResult, other: LargeResult): number {
  return one.key === other.key ? one.offset - other.offset : one.key < other.key ? -1 : 1;
}

/** Decides when results may be downloaded; `MapPart` implements it. */
export interface Gate {
  /** Whether these results may be downloaded now. If so, the caller calls `downloaded` when the download has ended. */
  admits(span: readonly LargeResult[]): boolean;
  downloaded(span: readonly LargeResult[]): void;
}

type Arrived = (results: readonly TaskResult[] | CloudparError) => void;

/** Adjacent results that one request downloads. */
interface Job {
  readonly from: Package;
  readonly span: readonly LargeResult[];
  readonly news: News;
  readonly gate: Gate | undefined;
  readonly arrived: Arrived;
}

/**
 * Downloads large results from the store. One request downloads adjacent results; several requests run at a time. A
 * request is sent only when the reader has room for its results.
 */
export class Downloads {
  readonly #connection: Connection;
  readonly #session: string;
  #waiting: Job[] = [];
  #running = 0;

  constructor(connection: Connection, session: string) {
    this.#connection = connection;
    this.#session = session;
  }

  /**
   * Downloads the results that a status only names.
   *
   * @param gate Limits the downloads for a reader that may be slow.
   * @param arrived Takes the results of each request, or the error with which the request failed.
   */
  begin(from: Package, news: News, arrived: Arrived, gate?: Gate): void {
    this.#waiting.push(...spans(news.fetches).map((span) => ({ from, span, news, gate, arrived })));
    this.go();
  }

  /** Drops the waiting downloads of a package. */
  drop(dropped: Package): void {
    this.#waiting = this.#waiting.filter(({ from }) => from !== dropped);
  }

  /** Starts as many downloads as are allowed now. */
  go(): void {
    while (this.#running < AT_ONCE) {
      const next = this.#waiting.findIndex(({ gate, span }) => gate?.admits(span) ?? true);
      const [job] = next < 0 ? [] : this.#waiting.splice(next, 1);
      if (job === undefined) {
        return;
      }
      this.#running += 1;
      void this.#run(job);
    }
  }

  async #run({ from, span, news, gate, arrived }: Job): Promise<void> {
    const found = await this.#fetch(from, span, news).catch((error: unknown) =>
      error instanceof CloudparError ? error : new CloudparError(`a download failed: ${String(error)}`),
    );
    this.#running -= 1;
    arrived(found);
    gate?.downloaded(span);
    this.go();
  }

  async #fetch(from: Package, span: readonly LargeResult[], news: News): Promise<TaskResult[]> {
    const [first] = span;
    const end = span.reduce((place, { offset, size }) => Math.max(place, offset + size), 0);
    if (first === undefined || first.offset === end) {
      return span.map(({ result }) => ({ ...result, data: new Uint8Array() }));
    }
    const data = await this.#get(from, first.key, first.offset, end, news);
    return span.map(({ result, offset, size }) => {
      const start = offset - first.offset;
      // This makes a copy, because a view would keep the whole download in memory until its last result was read.
      const own = span.length === 1 ? data : data.slice(start, start + size);
      return { ...result, data: own };
    });
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
    // The link may have expired, for example while this computer slept.
    return this.#connection.get(await this.#freshLink(from, key, news.page), start, end);
  }

  async #freshLink(from: Package, key: string, page: number): Promise<Link> {
    const packages = [{ package_id: from.id, cursor: page }];
    const reply = await this.#connection.call('await_tasks', { session: `${this.#session}-link`, packages });
    const link = reply.packages.map(({ links }) => links[key]).find((each) => each !== undefined);
    const deleted = reply.packages.find(({ state }) => state === 'expired');
    if (link === undefined && deleted !== undefined) {
      throw packageError(deleted);
    }
    if (link === undefined) {
      throw new CloudparError(`the master names no link for the results in ${key}: ${reply.missing[from.id] ?? ''}`);
    }
    return link;
  }
}
