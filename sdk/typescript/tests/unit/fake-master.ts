import { decode } from '../../src/codec/messages.ts';
import type { Fetch, FetchInit } from '../../src/http.ts';
import type { Draft, Message } from '../../src/messages.ts';
import { Pool, type PoolOptions } from '../../src/pool.ts';
import { Wakeup } from '../../src/wakeup.ts';
import { reply } from './scripted-platform.ts';
import { resultOf } from './statuses.ts';

/** Returns the id of the package with this number, counted from 0. */
export function idOf(number: number): string {
  return `p${String(number).padStart(31, '0')}`;
}

/** A package at the fake master. */
interface Kept {
  readonly start: Message<'StartTasks'>;
  readonly results: Draft<'TaskResult'>[];
  state: Draft<'PackageStatus'>['state'];
}

/**
 * A master without network. It ends every task at once with the outcome that `outcome` returns, and records requests.
 */
export class FakeMaster {
  readonly calls: string[] = [];
  readonly packages = new Map<string, Kept>();
  readonly acknowledged: string[] = [];
  /** The sizes of the downloads. */
  readonly downloads: number[] = [];
  /** The number of results in one answer. */
  page = 1000;
  fleet: Draft<'FleetStatus'> | null = null;
  sealKey: Uint8Array | null = null;
  codec: 'msgpack' | 'pickle' = 'msgpack';
  /** Called before a route is answered; it may throw or wait. */
  before: (route: string, init: FetchInit) => void | Promise<void> = () => undefined;
  outcome: (index: number, start: Message<'StartTasks'>) => Draft<'TaskResult'> = (index) => resultOf(index);
  /** Whether a task never gets a result because its package fails. */
  lost: (index: number) => boolean = () => false;
  readonly #news = new Wakeup();

  /** Opens a pool of this master. */
  pool(options: Partial<PoolOptions> = {}): Pool {
    return Pool.at({ endpoint: 'http://master', token: 't' }, { fetch: this.fetch, ...options });
  }

  /** Puts a package into another state. */
  change(packageId: string, state: Kept['state']): void {
    Object.assign(this.packages.get(packageId) ?? {}, { state });
    this.#news.wake();
  }

  /** Returns how often a route was called. */
  count(route: string): number {
    return this.calls.filter((each) => each === route).length;
  }

  readonly fetch: Fetch = async (url, init) => {
    const route = new URL(url).pathname.replace('/v1/', '');
    if (route === 'prove') {
      return new Response(null, { status: 404 }); // as masters up to 0.2.0
    }
    this.calls.push(route);
    init.signal?.throwIfAborted();
    await this.before(route, init);
    init.signal?.throwIfAborted();
    const body = init.body as Uint8Array;
    switch (route) {
      case 'hello':
        return reply('HelloReply', { release: '0', role: 'user', account_id: 'a', seal_key: this.sealKey })();
      case 'prepare_uploads':
        return reply('PrepareUploadsReply', {
          uploads: [{ key: 'data/a/1', link: { method: 'PUT', url: 'http://master/put' } }],
        })();
      case 'start_tasks':
        return this.#start(decode('StartTasks', body));
      case 'await_tasks':
        return this.#await(decode('AwaitTasks', body), init);
      case 'list_packages': {
        const common = { account_id: 'a', name: '', state: 'running', started_at: 0, progress: { tasks: 1 } } as const;
        const packages = [...this.packages.keys()].map((package_id) => ({ package_id, ...common }));
        return reply('ListPackagesReply', { packages })();
      }
      case 'cancel_tasks':
        return reply('CancelTasksReply', { state: 'cancelled' })();
      case 'acknowledge':
        this.acknowledged.push(...decode('Acknowledge', body).package_ids);
        return reply('AcknowledgeReply', {})();
      default:
        return this.#payload(route, init);
    }
  };

  #start(start: Message<'StartTasks'>): Promise<Response> | Response {
    const id = idOf(this.packages.size);
    const indices = [...Array(start.n).keys()].filter((index) => !this.lost(index));
    const results = indices.map((index) => this.outcome(index, start));
    this.packages.set(id, { start, results, state: indices.length < start.n ? 'failed' : 'completed' });
    this.#news.wake();
    return reply('StartTasksReply', { package_id: id })();
  }

  async #await(request: Message<'AwaitTasks'>, init: FetchInit): Promise<Response> {
    for (;;) {
      const missing: Record<string, string> = {};
      const packages = request.packages.flatMap(({ package_id, cursor }) => {
        const kept = this.packages.get(package_id);
        if (kept === undefined) {
          missing[package_id] = 'no such package for this token';
        }
        return kept === undefined ? [] : [this.#status(package_id, kept, cursor)];
      });
      const isNews = packages.some(({ state, results }) => state !== 'running' || results?.length);
      if (isNews || request.hold_s === 0 || this.fleet || Object.keys(missing).length > 0) {
        return reply('AwaitTasksReply', { packages, missing, fleet: this.fleet })();
      }
      await new Promise<void>((resolve, reject) => {
        init.signal?.addEventListener('abort', () => reject(init.signal.reason), { once: true });
        void this.#news.wait().then(resolve);
      });
    }
  }

  #status(package_id: string, kept: Kept, cursor: number): Draft<'PackageStatus'> {
    const from = Math.min(cursor, kept.results.length);
    const results = kept.results.slice(from, from + this.page);
    const end = Math.max(cursor, from + results.length);
    const more = end < kept.results.length;
    const keys = results.flatMap(([, , , , blob]) => (blob === null ? [] : [blob[0]]));
    const links = Object.fromEntries(keys.map((key) => [key, { method: 'GET' as const, url: `/payload/${key}` }]));
    const progress = { tasks: kept.start.n, done: kept.results.length };
    const reason = kept.state === 'failed' ? 'quota' : null;
    return { package_id, reason, state: kept.state, cursor: end, more, results, links, progress, codec: this.codec };
  }

  #payload(route: string, init: FetchInit): Response {
    if (route === 'put' || route === '/put') {
      return new Response('', { headers: { ETag: '"e"' } });
    }
    const [, start = '0', last = '0'] = /bytes=(\d+)-(\d+)/.exec(init.headers.Range ?? '') ?? [];
    const size = Number(last) - Number(start) + 1;
    this.downloads.push(size);
    const body = new Uint8Array(size);
    body[0] = 0xc6; // MessagePack's code for bytes, followed by their length
    new DataView(body.buffer).setUint32(1, size - 5);
    return new Response(body, { status: 206 });
  }
}

/** Lets all pending work of this process run for some turns of the event loop. */
export async function settled(turns = 50): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Reads all values. */
export async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) {
    found.push(value);
  }
  return found;
}
