import { expect, test } from 'vitest';
import { Events } from '../../src/events.ts';
import { Connection, Pool } from '../../src/index.ts';
import { reply, Scripted } from './scripted-fetch.ts';

const ADDRESS = { endpoint: 'http://master/', token: 'secret' };
const WHO = { release: '0.3.0', role: 'user', account_id: 'a', name: 'ann', seal_key: new Uint8Array(32) } as const;

test('whom a pool is told to be shows no key for seals', async () => {
  const scripted = () => new Scripted(reply('HelloReply', WHO));
  expect(await new Connection(ADDRESS, {}, new Events(), scripted()).call('hello', {})).toHaveProperty('seal_key');
  const pool = Pool.at(ADDRESS, {}, scripted());
  const who = await pool.hello();
  expect(who).toMatchObject({ role: 'user', name: 'ann' });
  expect(who).not.toHaveProperty('seal_key');
});
