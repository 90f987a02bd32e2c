import { expect, test } from 'vitest';
import { Connection } from '../../src/connection.ts';
import { Downloads, spans } from '../../src/downloads.ts';
import { CloudparError, Gone } from '../../src/errors.ts';
import { Events } from '../../src/events.ts';
import { type LargeResult, type News, Package, type TaskResult } from '../../src/package.ts';
import { type Answer, reply, ScriptedPlatform } from './scripted-platform.ts';
import { resultOf, statusOf, taskResult } from './statuses.ts';

const MEGABYTE = 1 << 20;
const LINK = { method: 'GET', url: 'http://store/key', headers: {} } as const;

function lying(index: number, key: string, offset: number, size: number): LargeResult {
  return { result: taskResult({ index }), key, offset, size };
}

test('neighbours are fetched together, up to a size', () => {
  const groups = spans([
    lying(2, 'a', 30, 5),
    lying(0, 'a', 0, 10),
    lying(1, 'a', 10, 20),
    lying(3, 'b', 35, 5),
    lying(4, 'b', 50, 10 * MEGABYTE),
    lying(5, 'b', 50 + 10 * MEGABYTE, 10 * MEGABYTE),
  ]);
  expect(groups.map((group) => group.map(({ result }) => result.index))).toEqual([[0, 1, 2], [3], [4], [5]]);
  expect(spans([])).toEqual([]);
});

async function download(fetches: [number, [string, number, number]][], links: News['links'], ...answers: Answer[]) {
  const scripted = new ScriptedPlatform(reply('HelloReply', { release: '', role: 'user' }), ...answers);
  const connection = new Connection({ endpoint: 'http://master', token: 't' }, {}, new Events(), scripted);
  await connection.call('hello', {});
  const from = new Package('p', fetches.length, 0);
  const news = from.take(
    statusOf('p', { cursor: 3, results: fetches.map(([index, blob]) => resultOf(index, blob)), links }),
  );
  const arrived = await new Promise<readonly TaskResult[] | CloudparError>((resolve) => {
    new Downloads(connection, 'me').begin(from, news, resolve);
  });
  return { arrived, sent: scripted.sent.slice(1) };
}

const partial =
  (...bytes: number[]) =>
  () =>
    new Response(new Uint8Array(bytes), { status: 206 });

test('each result gets its part', async () => {
  const { arrived, sent } = await download(
    [
      [0, ['key', 1, 4]],
      [1, ['key', 2, 5]],
    ],
    { key: LINK },
    partial(7, 8, 9),
  );
  expect(arrived).toMatchObject([
    { index: 0, data: new Uint8Array([7]) },
    { index: 1, data: new Uint8Array([8, 9]) },
  ]);
  expect(sent.map(({ headers }) => headers.get('range'))).toEqual(['bytes=4-6']);
});

test('an empty result is not downloaded', async () => {
  const { arrived, sent } = await download([[0, ['key', 0, 4]]], { key: LINK });
  expect(arrived).toMatchObject([{ data: new Uint8Array() }]);
  expect(sent).toHaveLength(0);
});

const fresh = reply('AwaitTasksReply', {
  packages: [statusOf('p', { links: { key: { ...LINK, url: 'http://new' } } })],
});

test('a link that has expired is renewed from the page that brought it', async () => {
  const old = () => new Response('expired', { status: 403 });
  const { arrived, sent } = await download([[0, ['key', 1, 0]]], { key: LINK }, old, fresh, partial(7));
  expect(arrived).toMatchObject([{ index: 0, data: new Uint8Array([7]) }]);
  expect(sent.map(({ url }) => url)).toEqual(['http://store/key', 'http://master/v1/await_tasks', 'http://new']);
});

test('a large result that another client has deleted is gone', async () => {
  const deleted = reply('AwaitTasksReply', {
    packages: [statusOf('p', { state: 'expired', message: 'acknowledged by its client' })],
  });
  const { arrived } = await download([[0, ['key', 1, 0]]], {}, deleted);
  expect(arrived).toBeInstanceOf(Gone);
  expect(arrived).toMatchObject({ message: expect.stringContaining('acknowledged by its client') });
});

test('a link that the master does not name any more is an error', async () => {
  const nothing = reply('AwaitTasksReply', { packages: [], missing: { p: 'it was deleted' } });
  const { arrived } = await download([[0, ['key', 1, 0]]], {}, nothing);
  expect(arrived).toBeInstanceOf(CloudparError);
  expect(arrived).toMatchObject({ message: expect.stringContaining('it was deleted') });
});
