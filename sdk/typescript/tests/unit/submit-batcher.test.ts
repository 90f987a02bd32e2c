import { expect, test, vi } from 'vitest';
import { decode } from '../../src/codec/messages.ts';
import { PackageFailed, QuotaExhausted, SerializationError, TooLarge } from '../../src/errors.ts';
import { Pool } from '../../src/index.ts';
import type { Draft, Message } from '../../src/messages.ts';
import { FakeMaster, idOf } from './fake-master.ts';
import { type Answer, error, reply, ScriptedPlatform } from './scripted-platform.ts';

/** A master whose tasks return their arguments; it refuses packages of more than `most` tasks. */
class Echoing extends ScriptedPlatform {
  /** The tasks of every package that a client tried to start. */
  readonly tried: number[] = [];
  readonly #packages: readonly Uint8Array[][] = [];
  readonly #most: number;
  readonly #refusal: Answer;

  constructor(most: number, refusal = error('too_large', 413)) {
    super();
    this.#most = most;
    this.#refusal = refusal;
  }

  override fetch: typeof fetch = async (input, init) => {
    const body = init?.body as Uint8Array;
    switch (String(input).split('/').at(-1)) {
      case 'prove':
        return new Response(null, { status: 404 }); // as masters up to 0.2.0
      case 'hello':
        return reply('HelloReply', { release: '0.3.0', role: 'user' })();
      case 'start_tasks':
        return this.#start(decode('StartTasks', body))();
      case 'await_tasks':
        return reply('AwaitTasksReply', { packages: decode('AwaitTasks', body).packages.map(this.#statusOf) })();
      default:
        return reply('AcknowledgeReply', {})();
    }
  };

  #start({ n, data }: Message<'StartTasks'>): Answer {
    this.tried.push(n);
    const items = data.type === 'inline' ? data.items : [];
    if (n > this.#most || items.some((item) => item.includes(HUGE))) {
      return this.#refusal;
    }
    const packages = this.#packages as Uint8Array[][];
    return reply('StartTasksReply', { package_id: String(packages.push([...items]) - 1) });
  }

  readonly #statusOf = ({ package_id }: Message<'Cursor'>): Draft<'PackageStatus'> => {
    const items = this.#packages[Number(package_id)] ?? [];
    const results = items.map((item, index): Draft<'TaskResult'> => {
      return [index, 'ok', 1, item, null, null, null, null, null, null, null];
    });
    return { package_id, state: 'completed', cursor: 1, progress: { tasks: items.length }, results };
  };
}

class Gate {
  open!: () => void;
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}

/** A master that is slow to start a package, and records its cancelled tasks. */
class Slow extends Echoing {
  readonly asked = new Gate();
  readonly answers = new Gate();
  readonly cancelled: Message<'CancelTasks'>['ranges'][] = [];

  constructor() {
    super(100);
    const echo = this.fetch;
    this.fetch = async (input, init) => {
      const route = String(input).split('/').at(-1);
      if (route === 'start_tasks') {
        this.asked.open();
        await this.answers.opened;
      } else if (route === 'cancel_tasks') {
        this.cancelled.push(decode('CancelTasks', init?.body as Uint8Array).ranges);
      }
      return echo(input, init);
    };
  }
}

/** A task with this byte is too large by itself. */
const HUGE = 0xc1;

const submitted = (pool: Pool, values: readonly unknown[]) =>
  Promise.allSettled(values.map((value) => pool.submit('m:f', [value])));

const poolOf = (master: Echoing) => Pool.at({ endpoint: 'http://master/', token: 'secret' }, {}, master);

test('tasks that are too large only together go in several packages', async () => {
  const master = new Echoing(2);
  const values = [0, 1, 2, 3, 4, 5, 6];
  const found = await submitted(poolOf(master), values);
  expect(found).toEqual(values.map((value) => ({ status: 'fulfilled', value: [[value], {}] })));
  expect(master.tried).toEqual([7, 3, 1, 2, 4, 2, 2]);
});

test('only a task that is too large by itself fails', async () => {
  const master = new Echoing(100);
  const [first, second, third] = await submitted(poolOf(master), [1, new Uint8Array([HUGE]), 3]);
  expect(first).toEqual({ status: 'fulfilled', value: [[1], {}] });
  expect(second).toMatchObject({ status: 'rejected', reason: expect.any(TooLarge) });
  expect(third).toEqual({ status: 'fulfilled', value: [[3], {}] });
});

test('only a task that cannot be sent fails', async () => {
  const [first, second, third] = await submitted(poolOf(new Echoing(100)), [1, new Map(), 3]);
  expect(first).toEqual({ status: 'fulfilled', value: [[1], {}] });
  expect(second).toMatchObject({ status: 'rejected', reason: expect.any(SerializationError) });
  expect(third).toEqual({ status: 'fulfilled', value: [[3], {}] });
});

test('another refusal fails all tasks', async () => {
  const master = new Echoing(1, error('quota_exhausted', 402));
  const found = await submitted(poolOf(master), [1, 2, 3]);
  expect(found).toEqual(Array(3).fill({ status: 'rejected', reason: expect.any(QuotaExhausted) }));
  expect(master.tried).toEqual([3]);
});

test('each caller has an error of its own when the start of their package is refused', async () => {
  const [first, second] = await submitted(poolOf(new Echoing(1, error('quota_exhausted', 402))), [1, 2]);
  const [one, other] = [first, second].map((each) => (each as PromiseRejectedResult).reason as QuotaExhausted);
  expect(one).not.toBe(other);
  expect([one?.message, one?.stack]).toEqual([other?.message, expect.stringContaining('submit-batcher.test')]);
});

test('each caller of a package that fails has an error with its task', async () => {
  const master = new FakeMaster();
  master.lost = () => true;
  const pool = master.pool();
  const found = await submitted(pool, ['a', 'b']);
  const reasons = found.map((each) => (each as PromiseRejectedResult).reason as PackageFailed);
  expect(reasons).toEqual([expect.any(PackageFailed), expect.any(PackageFailed)]);
  expect(reasons.map(({ taskIndex, packageId, taskInput }) => [taskIndex, packageId, taskInput])).toEqual([
    [0, idOf(0), "arguments ('a')"],
    [1, idOf(0), "arguments ('b')"],
  ]);
  await pool.close();
});

test('a task that was aborted meanwhile is not sent again', async () => {
  const abort = new AbortController();
  const master = new Echoing(1, () => {
    abort.abort(new Error('no longer'));
    return error('too_large', 413)();
  });
  const pool = poolOf(master);
  const [unwanted, wanted] = [pool.submit('m:f', [1], { signal: abort.signal }), pool.submit('m:f', [2])];
  await expect(unwanted).rejects.toThrow('no longer');
  expect(await wanted).toEqual([[2], {}]);
  expect(master.tried).toEqual([2, 1]);
});

test('a task that is aborted while its start waits is cancelled once it has started', async () => {
  const abort = new AbortController();
  const master = new Slow();
  const pool = poolOf(master);
  const [unwanted, wanted] = [pool.submit('m:f', [1], { signal: abort.signal }), pool.submit('m:f', [2])];
  await master.asked.opened;
  abort.abort(new Error('no longer'));
  await expect(unwanted).rejects.toThrow('no longer');
  expect(master.cancelled).toEqual([]);
  master.answers.open();
  expect(await wanted).toEqual([[2], {}]);
  expect(master.cancelled).toEqual([[[0, 1]]]);
});

test('a signal keeps nothing of tasks that have ended', async () => {
  const { signal } = new AbortController();
  const listens = vi.spyOn(signal, 'addEventListener');
  const pool = poolOf(new Echoing(100));
  await Promise.all([1, 2, 3].map((value) => pool.submit('m:f', [value], { signal })));
  const overs = listens.mock.calls.map(([, , options]) => (options as { signal: AbortSignal }).signal);
  expect(overs.length).toBe(3);
  await vi.waitFor(() => expect(overs.every(({ aborted }) => aborted)).toBe(true));
});

const SHARED = new AbortController().signal;

test.each([
  ['signals of their own', () => new AbortController().signal],
  ['one signal', () => SHARED],
])('many tasks with %s are no leak', async (_, signal) => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const pool = poolOf(new Echoing(100));
  const values = Array.from({ length: 20 }, (_, value) => value);
  await Promise.all(values.map((value) => pool.submit('m:f', [value], { signal: signal() })));
  expect(warned).not.toHaveBeenCalled();
});
