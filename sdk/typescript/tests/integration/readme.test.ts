// The README's example, run by Node alone on the built package, prints what the README says.

import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';

const BUILD = new URL('../../build/', import.meta.url);

test('the example prints what is said', async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const code = /```js\n(.*?)```/s.exec(readme)?.[1] ?? '';
  const output = /```text\n(.*?)```/s.exec(readme)?.[1];
  const script = new URL('readme-example.mjs', BUILD);
  await mkdir(BUILD, { recursive: true });
  await writeFile(script, code);
  const env = { ...process.env, CLOUDPAR_ENDPOINT: inject('endpoint'), CLOUDPAR_TOKEN: inject('token') };
  const { stdout, stderr } = await promisify(execFile)('node', [fileURLToPath(script)], { env });
  expect(stderr).toBe('');
  expect(stdout).toBe(output);
});
