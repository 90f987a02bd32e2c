// Starts a master and a worker on this machine for all integration tests, and builds the package for its README.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import type { Address } from '../../src/index.ts';

export const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
export const PYTHON = join(PACKAGE, '../../.venv/bin/python');

const ENDS_MS = 30_000;

declare module 'vitest' {
  export interface ProvidedContext {
    endpoint: string;
    token: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: PACKAGE });
  return start(project, []);
}

/** Starts them with code from these folders before the installed code, and gives the tests the master's address. */
export async function start(project: TestProject, code: readonly string[]): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'cloudpar-sdk-'));
  const tasks = join(PACKAGE, 'tests/integration/python');
  const command = ['-m', 'cloudpar', 'up', '--json', '--workers', '2', '--port', '0', '--data', folder];
  const up = spawn(PYTHON, command, {
    env: { ...process.env, PYTHONPATH: [tasks, ...code].join(':'), PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said: string[] = [];
  up.stderr.on('data', (text) => said.push(String(text)));
  const ended = once(up, 'exit').then(() => Promise.reject(new Error(`cloudpar up has ended: ${said.join('')}`)));
  ended.catch(() => undefined);
  let text = '';
  for await (const line of createInterface({ input: up.stdout })) {
    text += line;
    if (line === '}' || /^\{.*\}$/.test(line)) {
      break;
    }
  }
  if (text === '') {
    await ended;
  }
  const { endpoint, token } = addressOf(text);
  project.provide('endpoint', endpoint);
  project.provide('token', token);
  return async () => {
    up.kill('SIGTERM');
    const late = setTimeout(() => up.kill('SIGTERM'), ENDS_MS); // a second signal ends it at once
    await ended.catch(() => undefined);
    clearTimeout(late);
    await rm(folder, { recursive: true, force: true });
    if (up.exitCode !== 0) {
      throw new Error(`cloudpar up did not end well within ${ENDS_MS} ms: ${said.join('')}`);
    }
  };
}

/** Returns a master's address from the output of `cloudpar up --json`. */
export function addressOf(printed: string): Address {
  return JSON.parse(printed) as Address;
}
