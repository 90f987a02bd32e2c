// Packages that outlive their pool, in both languages; and how Python sees typed arrays.

import { execFileSync } from 'node:child_process';
import { expect, inject, test } from 'vitest';
import { Connection, Pool, range, SerializationError, TaskRaised } from '../../src/index.ts';
import { PYTHON } from './embedded.ts';

const address = { endpoint: inject('endpoint'), token: inject('token') };

/** Starts a package in Python and prints its id. */
function startedByPython(fn: string): string {
  const script = `
import cloudpar
with cloudpar.Pool("${address.endpoint}", "${address.token}", progress=False) as pool:
    print(pool.map(${fn}, range(4)).detach())
`;
  return execFileSync(PYTHON, ['-c', script], { encoding: 'utf8' }).trim();
}

/** Returns what a Python process reads of a package. */
function readByPython(packageId: string): string {
  const script = `
import cloudpar
with cloudpar.Pool("${address.endpoint}", "${address.token}", progress=False) as pool:
    print(pool.attach("${packageId}").results())
`;
  return execFileSync(PYTHON, ['-c', script], { encoding: 'utf8' }).trim();
}

test('a package that was started here is read later, here and in Python', async () => {
  const first = await Pool.open(address);
  const { packageId } = await first.start('sdk_tasks:square', [2, 3, 0.5]);
  await first.close();
  await using later = await Pool.open(address);
  const attached = await later.attach<number>(packageId);
  expect(await attached.results()).toEqual([4, 9, 0.25]);
  expect(await attached.refresh()).toMatchObject({ tasks: 3, done: 3, errors: 0 });
  expect(readByPython(packageId)).toBe('[4, 9, 0.25]');
  await attached.acknowledge();
});

test('a map that is detached continues', async () => {
  const first = await Pool.open(address);
  const packageId = await first.map('sdk_tasks:square', range(100)).detach();
  await first.close();
  await using later = await Pool.open(address);
  const attached = await later.attach<number>(packageId);
  expect((await attached.results()).at(-1)).toBe(99 * 99);
  await attached.acknowledge();
});

test('a package that Python started by reference is read here, sealed as it is', async () => {
  const packageId = startedByPython('cloudpar.reference("sdk_tasks:odd_fails")');
  expect(packageId).toMatch(/^s/);
  await using pool = await Pool.open(address);
  const attached = await pool.attach<number>(packageId);
  const found: unknown[] = [];
  for await (const each of attached.settled()) {
    found.push(each.status === 'fulfilled' ? each.value : each.reason);
  }
  expect([found[0], found[2]]).toEqual([0, 2]);
  expect(found[1]).toBeInstanceOf(TaskRaised);
  expect(found[1]).toMatchObject({ taskIndex: 1, packageId, remoteClass: 'ValueError', code: 'error' });
  await attached.acknowledge();
});

test('a package of a pickled function is refused with the reason', async () => {
  const packageId = startedByPython('lambda x: x');
  await using pool = await Pool.open(address);
  await expect(pool.attach(packageId)).rejects.toThrow(SerializationError);
  await expect(pool.attach(packageId)).rejects.toThrow('only Python reads');
  await new Connection(address).call('acknowledge', { package_ids: [packageId] });
});

test('typed arrays are lists of numbers in Python', async () => {
  await using pool = await Pool.open(address);
  const call = (array: unknown) => pool.submit('builtins:repr', [array]);
  expect(await call(new Float64Array([1, 0.5]))).toBe('[1.0, 0.5]');
  expect(await call(new Float32Array([1, 0.5]))).toBe('[1.0, 0.5]');
  expect(await call(new Int16Array([1, -2]))).toBe('[1, -2]');
  expect(await call(new BigUint64Array([2n ** 64n - 1n]))).toBe('[18446744073709551615]');
  expect(await call(new Uint8Array([1, 2]))).toBe("b'\\x01\\x02'");
  expect(await pool.submit('statistics:fmean', [new Float64Array([1, 2, 6])])).toBe(3);
});
