// Follows the README: its module, its command, and its programs, which Node runs on the built package.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { addressOf, PYTHON } from './embedded.ts';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));

let readme: string;
let folder: string;

beforeAll(async () => {
  readme = await readFile(join(PACKAGE, 'README.md'), 'utf8');
  folder = await mkdtemp(join(tmpdir(), 'cloudpar-readme-'));
  await mkdir(join(folder, 'node_modules/@cloudpar'), { recursive: true });
  await symlink(PACKAGE, join(folder, 'node_modules/@cloudpar/sdk'));
});

afterAll(() => rm(folder, { recursive: true }));

/** Returns the README's blocks in a language. */
function blocks(language: string): string[] {
  return [...readme.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, text]) => text ?? '');
}

async function run(program: string, address: { endpoint: string; token: string }): Promise<string> {
  await writeFile(join(folder, 'main.mjs'), program);
  const env = { ...process.env, CLOUDPAR_ENDPOINT: address.endpoint, CLOUDPAR_TOKEN: address.token };
  const { stdout, stderr } = await promisify(execFile)('node', ['main.mjs'], { cwd: folder, env });
  expect(stderr).toBe('');
  return stdout;
}

test("the reader's own module is found by the workers that the README's command starts", async () => {
  const module = /`(\w+\.py)`/.exec(readme)?.[1] ?? '';
  await writeFile(join(folder, module), blocks('python')[0] ?? '');
  // This command chooses a free port and prints the address as JSON, since other tests run at the same time.
  const command = join(folder, 'cloudpar');
  const data = join(folder, 'data');
  await writeFile(
    command,
    `#!/bin/sh\nexec '${PYTHON}' -m cloudpar "$@" --json --port 0 --workers 1 --data '${data}'\n`,
  );
  await chmod(command, 0o755);
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, PYTHONDONTWRITEBYTECODE: '1' };
  const line = blocks('sh')[0] ?? '';
  expect(line).toContain('cloudpar up');
  const up = spawn('sh', ['-c', line.replace('cloudpar up', 'exec cloudpar up')], { cwd: folder, env });
  const ended = once(up, 'exit');
  try {
    const [text] = (await Promise.race([once(createInterface({ input: up.stdout }), 'line'), ended])) as [string];
    expect(await run(blocks('js')[0] ?? '', addressOf(text))).toBe(blocks('text')[0]);
  } finally {
    up.kill('SIGTERM');
    await ended;
  }
});

test('the other example prints the output that the README shows', async () => {
  const address = { endpoint: inject('endpoint'), token: inject('token') };
  expect(await run(blocks('js')[1] ?? '', address)).toBe(blocks('text')[1]);
});
