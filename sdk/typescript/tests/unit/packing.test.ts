import { decode } from '@msgpack/msgpack';
import { expect, test, vi } from 'vitest';
import { SerializationError, TooLarge } from '../../src/errors.ts';
import { INLINE_DATA_BYTES, PACKAGE_TASKS } from '../../src/limits.ts';
import { range } from '../../src/range.ts';
import { Seals } from '../../src/seals.ts';
import { packed as pack } from './packed.ts';

vi.mock('../../src/limits.ts', async (original) => ({
  ...(await original<object>()),
  PACKAGE_TASKS: 1000,
  BLOB_BYTES: 1_000_000,
}));

test('small values travel inline', async () => {
  const { n, data } = await pack([1, 'two', { three: 3 }]);
  expect(n).toBe(3);
  expect(data.type === 'inline' && data.items.map((item) => decode(item))).toEqual([1, 'two', { three: 3 }]);
});

test('values may come over time', async () => {
  async function* values(): AsyncGenerator<number> {
    yield* [1, 2];
  }
  expect(await pack(values())).toEqual(await pack([1, 2]));
});

test('without values there are no tasks', async () => {
  expect(await pack([])).toEqual({ n: 0, data: { type: 'inline', items: [], seals: new Uint8Array() } });
});

test('a range yields its numbers, and is sent as start and step', async () => {
  expect(await pack(range(PACKAGE_TASKS))).toEqual({ n: PACKAGE_TASKS, data: { type: 'range', start: 0, step: 1 } });
  expect(await pack(range(9, 2, -3))).toEqual({ n: 3, data: { type: 'range', start: 9, step: -3 } });
  expect([...range(3)]).toEqual([0, 1, 2]);
  expect([...range(2, 9, 3)]).toEqual([2, 5, 8]);
  expect([...range(9, 2, -3)]).toEqual([9, 6, 3]);
  expect(range(3, 3)).toHaveLength(0);
  expect(() => range(0.5)).toThrow(RangeError);
  expect(() => range(0, 3, 0)).toThrow(/a step that is not 0/);
});

test('large values lie in a blob with a table of their places', async () => {
  const values = [new Uint8Array(INLINE_DATA_BYTES), 'small', new Uint8Array(10)];
  const { data } = await pack(values);
  if (data.type !== 'blob') {
    throw new Error(`it is ${data.type}`);
  }
  const table = new DataView(data.body.buffer, data.body.length - 8 * 4, 8 * 4);
  const offsets = [0, 1, 2, 3].map((index) => Number(table.getBigUint64(8 * index, true)));
  const items = values.map((_, index) => decode(data.body.subarray(offsets[index], offsets[index + 1])));
  expect(items).toEqual(values);
  expect(offsets[3]).toBe(data.body.length - 8 * 4);
});

test('the checksum is that of zlib', async () => {
  const { data } = await pack([new Uint8Array(INLINE_DATA_BYTES)]);
  const { crc32 } = await import('node:zlib');
  expect(data.type === 'blob' && data.crc32).toBe(data.type === 'blob' && crc32(data.body));
});

test('a value that is no plain data is named', async () => {
  await expect(pack([1, { at: new Map() }])).rejects.toThrow(SerializationError);
  await expect(pack([1, { at: new Map() }])).rejects.toThrow('the value of task 1.at is an instance of Map');
});

test('values without end are refused', async () => {
  function* numbers(): Generator<null> {
    for (;;) {
      yield null;
    }
  }
  const values = numbers();
  await expect(pack(values)).rejects.toThrow(TooLarge);
  expect(values.next().done).toBe(true);
  await expect(pack(range(PACKAGE_TASKS + 1))).rejects.toThrow(/passed 1,000 items/);
});

test('values that are too large together may be split', async () => {
  const values = [new Uint8Array(600_000), new Uint8Array(600_000)];
  await expect(pack(values)).rejects.toThrow(/first 2 tasks take 1200\d{3} bytes.*1000000: give buffersize/);
});

test('a value that is too large alone may be sent as a reference', async () => {
  const seals = new Seals(new Uint8Array(32), 'p');
  for (const each of [undefined, seals]) {
    const packing = pack([1, new Uint8Array(1_000_000)], each);
    await expect(packing).rejects.toThrow(/task 1 alone takes 10000\d\d bytes.*1000000: send a reference/);
  }
});

test('the event loop turns while many small values are packed and sealed', async () => {
  let clock = 0;
  const looks = vi.spyOn(performance, 'now').mockImplementation(() => clock++); // each reading of the clock takes 1 ms
  let turns = 0;
  const turn = setInterval(() => {
    turns += 1;
  }, 0);
  const other = (async () => {
    for (let count = 0; count < 2; count += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
  })();
  await pack([...range(999)], new Seals(new Uint8Array(32), 'p'));
  clearInterval(turn);
  looks.mockRestore();
  expect(turns).toBeGreaterThanOrEqual(2);
  await other;
});
