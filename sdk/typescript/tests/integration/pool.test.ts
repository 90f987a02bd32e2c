import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import {
  CloudparError,
  Connection,
  InvalidToken,
  type Message,
  type Output,
  Pool,
  RemoteTraceback,
  range,
  SerializationError,
  type Settled,
  TaskRaised,
  TaskTimeout,
} from '../../src/index.ts';
import { all } from '../unit/fake-master.ts';

const address = { endpoint: inject('endpoint'), token: inject('token') };
let folder: string;
let pool: Pool;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cloudpar-tasks-'));
});

afterAll(() => rm(folder, { recursive: true }));

beforeEach(() => {
  pool = Pool.at(address);
});

afterEach(() => pool.close());

/** Returns a package's status as the master shows it to any client. */
async function summaryOf(packageId: string | undefined): Promise<Message<'PackageSummary'> | undefined> {
  const { packages } = await new Connection(address).call('list_packages', {});
  return packages.find(({ package_id }) => package_id === packageId);
}

async function ends(packageId: string | undefined): Promise<void> {
  await vi.waitFor(async () => expect((await summaryOf(packageId))?.state).toMatch(/cancelled|expired/), 20_000);
}

const begun = (path: string) =>
  vi.waitFor(async () => expect((await import('node:fs')).existsSync(path)).toBe(true), { timeout: 20_000 });

describe('a map', () => {
  test('gives values in the order of the tasks', async () => {
    expect(await all(pool.map<number>('sdk_tasks:square', [3, 1, 2.5]))).toEqual([9, 1, 6.25]);
  });

  test('over a range of many', async () => {
    const values = await all(pool.map<number>('sdk_tasks:square', range(5000)));
    expect(values).toEqual([...range(5000)].map((value) => value * value));
  });

  test('gives values as they come', async () => {
    const gate = join(folder, 'gate');
    const seen: number[] = [];
    const results = pool.mapUnordered<unknown>('sdk_tasks:wait_for', [gate, folder], { chunksize: 1 });
    for await (const each of results.settled()) {
      seen.push(each.index);
      await writeFile(gate, '');
    }
    expect(seen).toEqual([1, 0]);
  });

  test('gives the first while the last still runs', async () => {
    const gate = join(folder, 'second-gate');
    const results = pool.map<string>('sdk_tasks:wait_for', [folder, gate], { chunksize: 1 });
    const reader = results[Symbol.asyncIterator]();
    expect(await reader.next()).toEqual({ done: false, value: folder });
    await writeFile(gate, '');
    expect(await reader.next()).toEqual({ done: false, value: gate });
    expect(await reader.next()).toMatchObject({ done: true });
  });

  test('of no values has no results', async () => {
    const results = pool.map('sdk_tasks:square', []);
    expect(await all(results)).toEqual([]);
    expect(await results.packageId).toBeUndefined();
  });

  test('calls the function in the style of its option call', async () => {
    const args = pool.map('sdk_tasks:call', [[1, 2]], { call: 'args' });
    expect(await all(args)).toEqual([[[1, 2], {}]]);
    const both = pool.map('sdk_tasks:call', [[[1], { b: 2 }]], { call: 'args_kwargs' });
    expect(await all(both)).toEqual([[[1], { b: 2 }]]);
  });

  test('takes and gives large values', async () => {
    const sizes = [300_000, 0, 400_000];
    const results = pool.map<Uint8Array>(
      'sdk_tasks:payload',
      sizes.map((size) => size),
    );
    expect((await all(results)).map(({ length }) => length)).toEqual(sizes);
    const payloads = sizes.map((size, index) => new Uint8Array(size).fill(index));
    expect(await all(pool.map('builtins:len', payloads))).toEqual(sizes);
    const copies = await all(pool.map<Uint8Array>('copy:copy', payloads));
    expect(copies.map((copy, index) => Buffer.compare(copy, payloads[index] ?? copy))).toEqual([0, 0, 0]);
  });
});

test('values are in Python what they are here', async () => {
  const values = [null, true, 2 ** 40, -1, 0.5, 'é漢😀', new Uint8Array([0, 255]), [1, [2]], { a: { b: null } }];
  const more = [new Date(1_795_242_600_123), 2n ** 64n - 1n, -(2n ** 63n)];
  expect(await all(pool.map('copy:copy', [...values, ...more]))).toEqual([...values, ...more]);
  expect(await all(pool.map('sdk_tasks:kind', [...values, ...more]))).toEqual([
    'NoneType',
    'bool',
    'int',
    'int',
    'float',
    'str',
    'bytes',
    'list',
    'dict',
    'datetime',
    'int',
    'int',
  ]);
});

describe('errors', () => {
  test('of a task end a loop over values, and are settled beside the others', async () => {
    await expect(all(pool.map('sdk_tasks:odd_fails', range(4)))).rejects.toThrow(
      expect.objectContaining({
        name: 'TaskRaised',
        message: 'ValueError: 1 is odd',
        taskIndex: 1,
        taskInput: 'value 1',
      }),
    );
    const settled = await all<Settled<unknown>>(pool.map('sdk_tasks:odd_fails', range(4)).settled());
    expect(settled.map(({ index, status }) => [index, status])).toEqual([
      [0, 'fulfilled'],
      [1, 'rejected'],
      [2, 'fulfilled'],
      [3, 'rejected'],
    ]);
  });

  test('of a task have the remote traceback as their cause', async () => {
    const error = await pool.submit('sdk_tasks:odd_fails', [1]).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TaskRaised);
    const { cause } = error as TaskRaised;
    expect(cause).toBeInstanceOf(RemoteTraceback);
    expect((cause as RemoteTraceback).message).toContain('in odd_fails');
  });

  test('of a module that is missing say how to fix it', async () => {
    const missing = pool.submit('not_installed_anywhere:f');
    await expect(missing).rejects.toThrow(/no module 'not_installed_anywhere'.*install the package.*PYTHONPATH/);
  });

  test('of a result that MessagePack does not hold', async () => {
    await expect(pool.submit('sdk_tasks:opaque')).rejects.toThrow(SerializationError);
  });

  test('of a task that takes too long', async () => {
    const slow = pool.submit('sdk_tasks:touch_and_wait', [join(folder, 'slow')], { taskTimeoutS: 0.2 });
    await expect(slow).rejects.toThrow(TaskTimeout);
  });

  test('of a token that the master does not know', async () => {
    const opening = Pool.open({ endpoint: address.endpoint, token: 'unknown' });
    await expect(opening).rejects.toThrow(InvalidToken);
  });
});

describe('submitted tasks', () => {
  test('of several functions in a row', async () => {
    const results = [
      pool.submit('math:factorial', [20]),
      pool.submit('sdk_tasks:call', [1], { kwargs: { b: 'two' } }),
      pool.submit('math:factorial', [5]),
      pool.submit('builtins:dict'),
    ];
    expect(await Promise.all(results)).toEqual([2432902008176640000n, [[1], { b: 'two' }], 120, {}]);
  });

  test('can be cancelled while they run', async () => {
    const path = join(folder, 'submitted');
    const abort = new AbortController();
    const [waiting, other] = [
      pool.submit('sdk_tasks:touch_and_wait', [path], { signal: abort.signal }),
      pool.submit('math:factorial', [3]),
    ];
    await begun(path);
    abort.abort(new Error('no longer'));
    await expect(waiting).rejects.toThrow('no longer');
    expect(await other).toBe(6);
  });
});

describe('tasks whose results are not needed are cancelled', () => {
  test('when a loop is left', async () => {
    const values = [folder, join(folder, 'never')];
    const results = pool.map('sdk_tasks:wait_for', values, { chunksize: 1 });
    for await (const value of results) {
      expect(value).toBe(folder);
      break;
    }
    await ends(await results.packageId);
  });

  test('when the signal is aborted', async () => {
    const path = join(folder, 'aborted');
    const abort = new AbortController();
    const results = pool.map('sdk_tasks:touch_and_wait', [path], { signal: abort.signal });
    const reading = all(results);
    reading.catch(() => undefined);
    await begun(path);
    abort.abort();
    await expect(reading).rejects.toThrow(/aborted/);
    await ends(await results.packageId);
  });

  test('when the map is cancelled', async () => {
    const results = pool.map('sdk_tasks:wait_for', [join(folder, 'never')]);
    const reading = all(results);
    reading.catch(() => undefined);
    const packageId = await results.packageId;
    await results.cancel();
    await expect(reading).rejects.toThrow('the map was cancelled');
    await ends(packageId);
  });

  test('when the pool is closed', async () => {
    const own = Pool.at(address);
    const results = own.map('sdk_tasks:wait_for', [join(folder, 'never')]);
    const reading = all(results);
    const submitted = own.submit('sdk_tasks:wait_for', [join(folder, 'never')]);
    reading.catch(() => undefined);
    submitted.catch(() => undefined);
    const packageId = await results.packageId;
    await own.close();
    await expect(reading).rejects.toThrow(CloudparError);
    await expect(submitted).rejects.toThrow(CloudparError);
    await ends(packageId);
    await expect(own.hello()).rejects.toThrow('closed');
  });
});

test('results that were read are deleted at the master', async () => {
  const own = Pool.at(address);
  const results = own.map('sdk_tasks:square', range(3));
  await all(results);
  const packageId = (await results.packageId) ?? '';
  await own.close();
  const { packages } = await new Connection(address).call('await_tasks', { packages: [{ package_id: packageId }] });
  expect(packages).toMatchObject([
    { state: 'expired', message: expect.stringContaining('acknowledged by its client') },
  ]);
});

test('onOutput gets what tasks print', async () => {
  const outputs: Output[] = [];
  await using own = Pool.at(address, { onOutput: (output) => outputs.push(output) });
  await all(own.map('sdk_tasks:say', ['hello', 'you']));
  expect(outputs.sort((one, other) => one.index - other.index)).toMatchObject([
    { index: 0, stdout: 'hello', stderr: 'HELLO' },
    { index: 1, stdout: 'you', stderr: 'YOU' },
  ]);
});
