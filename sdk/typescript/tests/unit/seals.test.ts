import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SealBroken } from '../../src/errors.ts';
import { INLINE_DATA_BYTES } from '../../src/limits.ts';
import { settle } from '../../src/outcomes.ts';
import type { TaskResult } from '../../src/package.ts';
import { SEAL_BYTES, Seals, sealedPackageId } from '../../src/seals.ts';
import { packed as pack } from './packed.ts';
import { taskResult } from './statuses.ts';

interface Vector {
  of: string;
  key: string;
  package_id: string;
  seal: string;
  index: number;
  outcome: TaskResult['outcome'];
  payload?: string;
  repeat?: number;
  account_id?: string;
  idempotency_key?: string;
  hash?: string;
  reference?: boolean;
  call?: string;
  codec?: string;
  python?: string;
  tasks?: number;
  range?: [number, number];
}

const FILE = new URL('../../../protocol/vectors/seals.json', import.meta.url);
const VECTORS = JSON.parse(readFileSync(FILE, 'utf8')) as Vector[];
const KEY = new Uint8Array(32).fill(7);
function made(vector: Vector): string | Uint8Array {
  const { index, outcome, hash = '', call = '', codec = '', python = '', tasks = 0, range } = vector;
  const seals = new Seals(Buffer.from(vector.key, 'hex'), vector.package_id);
  const data = Buffer.from((vector.payload ?? '').repeat(vector.repeat ?? 1), 'hex');
  switch (vector.of) {
    case 'package':
      return sealedPackageId(vector.account_id ?? '', vector.idempotency_key ?? '');
    case 'data':
      return seals.data(index, data);
    case 'result':
      return seals.result({ index, outcome, data });
    case 'place':
      return seals.place(index, outcome, ['results/p/l/0', 5, 7]);
    default:
      return seals.code({ hash, reference: vector.reference ? 'a:b' : null }, { call, codec, python, tasks, range });
  }
}

test.each(VECTORS)('seals are those of Python: $of $index', (vector) => {
  const seal = made(vector);
  expect(typeof seal === 'string' ? seal : Buffer.from(seal).toString('hex')).toBe(vector.seal);
});

test('a changed result is refused, unread', () => {
  const seals = new Seals(KEY, 'sp');
  const result = taskResult({ index: 3, data: new Uint8Array([1]) });
  const good = { ...result, seal: seals.result(result) };
  const context = { packageId: 'sp', base: 0, seals };
  expect(settle(good, context)).toEqual({ index: 3, status: 'fulfilled', value: 1 });
  const changes = [
    { data: new Uint8Array([2]) },
    { data: null },
    { index: 4 },
    { seal: null },
    { seal: new Uint8Array(SEAL_BYTES) },
    { seal: new Uint8Array() },
    { seal: new Seals(KEY, 'other').result(result) },
  ];
  for (const change of changes) {
    const settled = settle({ ...good, ...change }, context);
    expect(settled.status === 'rejected' && settled.reason).toBeInstanceOf(SealBroken);
    expect(settled.status === 'rejected' && settled.reason).toMatchObject({
      message: expect.stringContaining('the master has a new secret'),
    });
  }
  const lost = taskResult({ index: 3, outcome: 'lost' });
  expect(seals.verified(lost)).toBe(lost);
});

test('the seal of a place is accepted for the result that lay there', () => {
  const seals = new Seals(KEY, 'sp');
  const blob: [string, number, number] = ['results/p/l/0', 1, 7];
  const seal = seals.place(3, 'ok', blob);
  const result = taskResult({ index: 3, data: new Uint8Array([1]), blob, seal });
  expect(seals.verified(result).broken).toBeUndefined();
  expect(seals.verified({ ...result, blob: ['results/p/l/1', 1, 7] }).broken).toBeInstanceOf(SealBroken);
  expect(seals.verified({ ...result, blob: null }).broken).toBeInstanceOf(SealBroken);
});

test('items are sealed inline and in blobs', async () => {
  const seals = new Seals(KEY, 'sp');
  const { data: inline } = await pack([1, 2], seals);
  const expected = [seals.data(0, new Uint8Array([1])), seals.data(1, new Uint8Array([2]))];
  expect(inline.type === 'inline' && Buffer.from(inline.seals ?? [])).toEqual(Buffer.concat(expected));
  const large = new Uint8Array(INLINE_DATA_BYTES);
  const { data: blob } = await pack([large], seals);
  const { data: plain } = await pack([large]);
  if (blob.type !== 'blob' || plain.type !== 'blob') {
    throw new Error('they are inline');
  }
  const at = blob.body.length - 16 - SEAL_BYTES;
  expect(blob.body.length).toBe(plain.body.length + SEAL_BYTES);
  expect(Buffer.from(blob.body.subarray(at, at + SEAL_BYTES))).toEqual(
    Buffer.from(seals.data(0, blob.body.subarray(0, at))),
  );
});
