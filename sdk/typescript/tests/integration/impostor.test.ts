// While a master restarts, another process takes its port: it gets no token, and nothing that it could use later.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, expect, test, vi } from 'vitest';
import { type Address, Connection, Pool } from '../../src/index.ts';
import { all } from '../unit/fake-master.ts';
import { PYTHON } from './embedded.ts';

const CHALLENGES = 6;
const endings: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) {
    await end();
  }
});

function start(args: readonly string[], variables: Record<string, string> = {}): ChildProcess {
  const child = spawn(PYTHON, ['-m', ...args], {
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  endings.push(() => {
    child.kill('SIGKILL');
    return ended;
  });
  return child;
}

/** Starts a master, and returns it when it serves. */
async function master(folder: string, port: string): Promise<[ChildProcess, Address & { worker_token: string }]> {
  const child = start(['cloudpar_master', '--data', folder, '--port', port]);
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    expect(line).toContain('ready');
    break;
  }
  return [child, JSON.parse(await readFile(join(folder, 'connection.json'), 'utf8'))];
}

test('an impostor gets challenges only, and the pool goes on when the master is back', async () => {
  // Pools of earlier releases remove the data folder of a stopped master if its name starts with "cloudpar-".
  const folder = await mkdtemp(join(tmpdir(), 'impostor-'));
  endings.push(() => rm(folder, { recursive: true }));
  const [first, address] = await master(folder, '0');
  const { endpoint, token, worker_token: workerToken } = address;
  const port = new URL(endpoint).port;
  const pool = await Pool.open({ endpoint, token });
  const values = all(pool.map('builtins:abs', [-1, -2]));
  const started = async () => (await new Connection(address).call('list_packages', {})).packages;
  await vi.waitFor(async () => expect(await started()).toHaveLength(1), 20_000);

  const gone = once(first, 'exit');
  first.kill('SIGKILL');
  await gone;
  const received: string[] = [];
  const impostor = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await request.toArray()).toString('latin1');
    received.push(`${request.method} ${request.url}\n${JSON.stringify(request.headers)}\n${body}`);
    response.writeHead([404, 401, 503, 200][received.length % 4] as number).end('{}');
  });
  impostor.listen(Number(port), '127.0.0.1');
  await once(impostor, 'listening');
  await vi.waitFor(() => expect(received.length).toBeGreaterThan(CHALLENGES), { timeout: 60_000 });
  const closed = once(impostor, 'close');
  impostor.close();
  impostor.closeAllConnections();
  await closed;

  await master(folder, port);
  const worker = ['worker', '--endpoint', endpoint, '--executors', '1', '--isolation', 'own'];
  start(['cloudpar', ...worker], { CLOUDPAR_WORKER_TOKEN: workerToken });
  expect(await values).toEqual([1, 2]);
  await pool.close();
  for (const request of received) {
    expect(request).toMatch(/^POST \/v1\/prove\n/);
    expect(request.toLowerCase()).not.toContain('authorization');
    expect(request).not.toContain(token);
    expect(Object.keys(JSON.parse(request.split('\n')[2] ?? ''))).toEqual(['key', 'nonce']);
  }
});
