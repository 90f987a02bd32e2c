import { expect, test, vi } from 'vitest';
import { Events } from '../../src/events.ts';
import type { Fetch } from '../../src/http.ts';
import { Connection, Forbidden, Pool, type PoolEvent, range } from '../../src/index.ts';
import { FakeMaster, idOf } from './fake-master.ts';
import { reply, ScriptedPlatform } from './scripted-platform.ts';

const ADDRESS = { endpoint: 'http://master/', token: 'secret' };
const WHO = { release: '0.4.0', role: 'user', account_id: 'a', name: 'ann', seal_key: new Uint8Array(32) } as const;

test('hello of a pool does not return the key for seals', async () => {
  const scripted = () => new ScriptedPlatform(reply('HelloReply', WHO));
  expect(await new Connection(ADDRESS, {}, new Events(), scripted()).call('hello', {})).toHaveProperty('seal_key');
  const pool = Pool.at(ADDRESS, {}, scripted());
  expect(pool.endpoint).toBe('http://master');
  const who = await pool.hello();
  expect(who).toMatchObject({ role: 'user', name: 'ann' });
  expect(who).not.toHaveProperty('seal_key');
});

test('only Pool.open creates a pool', () => {
  const PublicPool = Pool as unknown as new (address: object) => Pool;
  expect(() => new PublicPool(ADDRESS)).toThrow('a pool is opened by `await Pool.open({ endpoint, token })`');
});

test.each(['worker', 'admin'] as const)('a pool is not opened with the %s token', async (role) => {
  const { fetch } = new ScriptedPlatform(reply('HelloReply', { ...WHO, role }));
  const opening = Pool.open({ ...ADDRESS, fetch: fetch as Fetch });
  await expect(opening).rejects.toThrow(Forbidden);
  await expect(opening).rejects.toThrow(`this is the ${role} token of http://master, and a pool needs an account's`);
});

test('no package starts unsealed at a master that knows seals, nor a call of submit', async () => {
  const master = new FakeMaster();
  master.sealKey = new Uint8Array(32);
  const pool = master.pool();
  pool.submit('m:f', [1]).catch(() => undefined);
  await pool.start('m:f', range(2));
  await pool.start('m:f', [1]);
  await vi.waitFor(() => expect(master.packages.size).toBe(3));
  const seals = [...master.packages.values()].map(({ start }) => start.seal);
  expect(seals.map((seal) => seal?.length)).toEqual([16, 16, 16]);
  expect([master.calls[0], master.count('hello')]).toEqual(['hello', 1]);
  await pool.close();
});

test('every request goes through the fetch that was given', async () => {
  const master = new FakeMaster();
  master.outcome = (index) => [index, 'ok', 1, null, ['r', 10, 0], null, null, null, null, null, null];
  const pool = await Pool.open({ ...ADDRESS, fetch: master.fetch });
  for await (const _ of pool.map('m:f', [new Uint8Array(400_000)])) {
    // Only its upload and its download matter.
  }
  await pool.close();
  const called = new Set(master.calls);
  expect(called).toEqual(
    new Set(['hello', 'prepare_uploads', '/put', 'start_tasks', 'await_tasks', '/payload/r', 'acknowledge']),
  );
});

test('a package that waits for its first worker is reported, with the message of the master', async () => {
  const master = new FakeMaster();
  master.fleet = { running: 0, starting: 2, message: 'no capacity in eu-west-1a' };
  const before = master.fetch;
  const events: PoolEvent[] = [];
  const pool = master.pool({ onEvent: (event) => events.push(event), fetch: before });
  master.before = (route) => {
    if (route === 'await_tasks' && master.count('await_tasks') < 3) {
      Object.assign(master.packages.get(idOf(0)) ?? {}, { state: 'running', results: [] });
    }
  };
  const reading = pool.submit('m:f', [1]).catch(() => undefined);
  await vi.waitFor(() => expect(events.map(({ type }) => type)).toContain('waiting_for_workers'));
  expect(events.find(({ type }) => type === 'waiting_for_workers')).toMatchObject({
    packageIds: [idOf(0)],
    starting: 2,
    message: 'no capacity in eu-west-1a',
  });
  await pool.close();
  await reading;
});

test('an error in onOutput does no harm to the package', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const master = new FakeMaster();
  master.outcome = (index) => [index, 'ok', 1, new Uint8Array([7]), null, null, null, 'said', null, null, null];
  const pool = master.pool({
    onOutput: () => {
      throw new Error('mine');
    },
  });
  expect(await pool.submit('m:f')).toBe(7);
  expect(warned).toHaveBeenCalledWith(expect.stringContaining('onOutput failed'), 'CloudparWarning');
  warned.mockRestore();
  await pool.close();
});

test('a call on a closed pool says that the pool is closed', async () => {
  const master = new FakeMaster();
  const pool = master.pool();
  const started = await pool.start('m:f', range(2));
  await pool.close();
  const asked = master.calls.length;
  const closed = 'the pool is closed and takes no more calls: open another one by Pool.open()';
  expect(() => pool.map('m:f', range(2))).toThrow(closed);
  expect(() => pool.mapUnordered('m:f', range(2))).toThrow(closed);
  for (const call of [
    () => pool.start('m:f', range(2)),
    () => pool.submit('m:f'),
    () => pool.attach(started.packageId),
    () => pool.hello(),
    () => started.results(),
    () => started.refresh(),
    () => started.cancel(),
    () => started.acknowledge(),
  ]) {
    await expect(call()).rejects.toThrow(closed);
  }
  expect(master.calls).toHaveLength(asked);
});
