import { expect, vi } from 'vitest';
import { Gone, NotFound, range, SealBroken, SerializationError } from '../../src/index.ts';
import { Seals } from '../../src/seals.ts';
import { idOf, settled } from './fake-master.ts';
import { test } from './fixtures.ts';

test('a package that was started can be read again and again, and belongs to no pool', async ({ master }) => {
  const pool = master.pool();
  const started = await pool.start<number>('m:f', range(3));
  expect(started.packageId).toBe(idOf(0));
  await pool.close();
  const other = master.pool();
  const attached = await other.attach<number>(started.packageId);
  expect(attached.progress).toMatchObject({ tasks: 3, done: 3 });
  expect(await attached.results()).toEqual([0, 1, 2]);
  for await (const each of attached.settled()) {
    expect(each).toEqual({ index: 0, status: 'fulfilled', value: 0 });
    break;
  }
  expect(await attached.refresh()).toMatchObject({ tasks: 3 });
  await other.close();
  expect(master.acknowledged).toEqual([]);
  const last = master.pool();
  await (await last.attach(idOf(0))).acknowledge();
  expect(master.acknowledged).toEqual([idOf(0)]);
  await last.close();
});

test('the first characters of an id are enough if one package alone starts with them', async ({ master }) => {
  const pool = master.pool();
  await pool.start('m:f', range(1));
  expect((await pool.attach('p0')).packageId).toBe(idOf(0));
  await pool.start('m:f', range(1));
  await expect(pool.attach('p')).rejects.toThrow("2 packages start with 'p'");
  await expect(pool.attach('q')).rejects.toThrow(NotFound);
  await expect(pool.attach('')).rejects.toThrow(TypeError);
  await pool.close();
});

test('a loop over a package that still runs ends with the pool, and the package goes on', async ({ master }) => {
  const pool = master.pool();
  master.outcome = (index) => [index, 'ok', 1, null, null, null, null, null, null, null, null];
  const started = await pool.start('m:f', range(2));
  const kept = master.packages.get(idOf(0));
  kept?.results.pop();
  Object.assign(kept ?? {}, { state: 'running' });
  const reader = started.settled();
  await reader.next();
  const next = reader.next();
  setImmediate(() => void pool.close());
  await expect(next).rejects.toThrow('the pool was closed');
  expect(master.acknowledged).toEqual([]);
});

test('reading does not wait for the poll about another package that the master holds open', async ({ master }) => {
  const pool = master.pool();
  const { packageId } = await pool.start<number>('m:f', range(1));
  master.before = () => {
    Object.assign(master.packages.get(idOf(1)) ?? {}, { state: 'running', results: [] });
  };
  const held = pool.map('m:f', range(1));
  await held.packageId;
  await vi.waitFor(() => expect(master.count('await_tasks')).toBeGreaterThan(0));
  await settled();
  expect(await (await pool.attach(packageId)).results()).toEqual([0]);
  await pool.close();
});

test('a sealed package is not read without a key', async ({ master }) => {
  const pool = master.pool();
  const { packageId } = await pool.start('m:f', range(1));
  const sealed = `s${packageId.slice(1)}`;
  master.packages.set(sealed, master.packages.get(packageId) as NonNullable<ReturnType<typeof master.packages.get>>);
  await expect((await pool.attach(sealed)).results()).rejects.toThrow(SealBroken);
  await pool.close();
});

test('attach to a package that cannot be read says why', async ({ master }) => {
  const pool = master.pool();
  await expect(pool.attach('f'.repeat(32))).rejects.toThrow(NotFound);
  const { packageId } = await pool.start('m:f', range(1));
  master.codec = 'pickle';
  await expect(pool.attach(packageId)).rejects.toThrow(SerializationError);
  await expect(pool.attach(packageId)).rejects.toThrow(
    /started in Python with a pickled function.*cloudpar\.reference/,
  );
  master.codec = 'msgpack';
  Object.assign(master.packages.get(packageId) ?? {}, { state: 'expired' });
  await expect(pool.attach(packageId)).rejects.toThrow(Gone);
  await expect(pool.start('m:f', [])).rejects.toThrow('at least one value');
  await pool.close();
});

test('the results of a sealed package are verified, also if another process started it', async ({ master }) => {
  master.sealKey = new Uint8Array(32).fill(7);
  const pool = master.pool();
  const { packageId } = await pool.start('m:f', range(2));
  const kept = master.packages.get(packageId);
  const sealedId = 's'.padEnd(32, '1');
  const seals = new Seals(master.sealKey, sealedId);
  const seal = seals.result({ index: 0, outcome: 'ok', data: new Uint8Array([0]) });
  kept?.results.splice(0, 1, [0, 'ok', 1, new Uint8Array([0]), null, null, null, null, null, seal, null]);
  if (kept !== undefined) {
    master.packages.set(sealedId, kept);
  }
  const read = [];
  for await (const each of (await pool.attach(sealedId)).settled()) {
    read.push(each.status === 'fulfilled' ? each.value : each.reason.name);
  }
  expect(read).toEqual([0, 'SealBroken']);
  await pool.close();
});
