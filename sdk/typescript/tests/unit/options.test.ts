import { expect, test } from 'vitest';
import { Connection, Pool, range } from '../../src/index.ts';
import { FakeMaster } from './fake-master.ts';

const pool = new FakeMaster().pool();

test.each([
  [{ chunkSize: 3 }, 'map has no option chunkSize: did you mean chunksize?'],
  [{ chunk_size: 3 }, 'did you mean chunksize?'],
  [{ task_timeout_s: 3 }, 'did you mean taskTimeoutS?'],
  [{ taskTimeout: 3 }, 'did you mean taskTimeoutS?'],
  [{ retrys: 3 }, 'did you mean retries?'],
  [{ kwargs: {} }, 'map has no option kwargs: it has taskTimeoutS, retries'],
  [{ chunksize: 0 }, 'the option chunksize of map must be an integer, at least 1, and is 0'],
  [{ buffersize: 1.5 }, 'an integer, at least 1, and is 1.5'],
  [{ taskTimeoutS: '3 s' }, 'a positive number of seconds, at most 1000000000, and is "3 s"'],
  [{ taskTimeoutS: '3' }, 'and is "3"'],
  [{ taskTimeoutS: true }, 'and is true'],
  [{ taskTimeoutS: [3] }, 'and is [3]'],
  [{ taskTimeoutS: Number.NaN }, 'and is NaN'],
  [{ taskTimeoutS: Number.POSITIVE_INFINITY }, 'and is Infinity'],
  [{ retries: 101 }, 'an integer from 0 to 100, and is 101'],
  [{ retryOn: 'OSError' }, 'an array of at most 20 names, such as ["OSError"], and is "OSError"'],
  [{ retryOn: [''] }, 'an array of at most 20 names'],
  [{ retryOn: Array(21).fill('OSError') }, 'an array of at most 20 names'],
  [{ call: 'star' }, '"value", "args" or "args_kwargs", and is "star"'],
  [{ signal: new AbortController() }, 'must be an AbortSignal'],
])('a map with the options %j is a TypeError', (options, text) => {
  expect(() => pool.map('m:f', [1], options as object)).toThrow(TypeError);
  expect(() => pool.map('m:f', [1], options as object)).toThrow(text);
});

test('other calls check their options, too', async () => {
  await expect(pool.submit('m:f', [], { kwarg: {} } as object)).rejects.toThrow('did you mean kwargs?');
  await expect(pool.submit('m:f', 'x' as never)).rejects.toThrow("such as ['x'] for f('x')");
  await expect(pool.start('m:f', [1], { buffersize: 3 } as object)).rejects.toThrow('start has no option buffersize');
  await expect(Pool.open({ tokn: 'x' } as object)).rejects.toThrow('did you mean token?');
  await expect(Pool.open({ token: '' })).rejects.toThrow(
    'option token of Pool.open must be a string that is not empty',
  );
  await expect(Pool.open({ token: ['secret'] } as object)).rejects.toThrow('not empty, and is of type object');
  await expect(Pool.open({ endpoint: '' })).rejects.toThrow('must be a URL, and is ""');
  const address = { endpoint: 'http://master', token: 't' };
  expect(() => new Connection(address, { patience: 3 } as object)).toThrow('did you mean patienceS?');
  for (const patienceS of ['4', true, null, [4], Number.NaN, -1]) {
    expect(() => new Connection(address, { patienceS } as object)).toThrow('must be a number of seconds, at least 0');
  }
  expect(() => pool.map('m:f', [1], { buffersize: 5n } as object)).toThrow('an integer, at least 1, and is 5');
  expect(() => new Connection(address, 300 as never)).toThrow('the options of Connection must be an object');
});

test('an option without a value was not given', () => {
  const options = { chunksize: undefined, signal: undefined, buffersize: undefined };
  expect(() => pool.map('m:f', range(0), options)).not.toThrow();
});

test.each([
  ['abc', 'the values are the string "abc": give an array, such as [text]'],
  [undefined, 'the values are undefined; give an array'],
  [null, 'the values are null; give an array'],
  [3, 'the values are of type number; give an array'],
  [{ a: 1 }, 'the values are of type object; give an array'],
  [Promise.resolve([1]), 'a promise: await it first'],
])('the values %s are a TypeError', (values, text) => {
  expect(() => pool.map('m:f', values as never)).toThrow(TypeError);
  expect(() => pool.map('m:f', values as never)).toThrow(text);
});

test('a reference that names no function is a TypeError at once', async () => {
  expect(() => pool.map('math.sqrt', [1])).toThrow('"math.sqrt" names no function');
  await expect(pool.submit('os:system()')).rejects.toThrow(TypeError);
  expect(() => pool.map(undefined as never, [1])).toThrow('undefined names no function');
  expect(() => pool.map(((x: number) => x) as never, [1])).toThrow(
    /a JavaScript function .*tasks are Python functions/,
  );
});
