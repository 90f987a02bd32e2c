// Runs the packed package on every supported runtime, and compiles its types with every version of TypeScript.
// `make runtimes` runs this, and installs them into build/runtimes.

import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import {
  BARE,
  compile,
  type Installed,
  install,
  PACKAGE,
  PACKAGE_MISSING,
  run,
  STACK_PROGRAM,
} from '../package/packed.ts';

const RUNTIMES = join(PACKAGE, '../../build/runtimes/node_modules');

const COMMANDS: Record<string, readonly [string, ...string[]]> = {
  'Node 22': ['node-22/bin/node'],
  'Node 24': ['node-24/bin/node'],
  'Node 26': ['node-26/bin/node'],
  Bun: ['@oven/bun-linux-x64/bin/bun', 'run'],
  Deno: ['@deno/linux-x64-glibc/deno', 'run', '--allow-all', '--node-modules-dir=manual', '--no-lock'],
};

const EXPECTED = {
  map: Array.from({ length: 200 }, (_, value) => value * value),
  submit: [1, 2, 6],
  payload: [[400_000, 7], 'small'],
  error: [true, 'TaskRaised', 'ValueError: 1 is odd', 0, 'ValueError'],
  caller: true,
  aborted: 'enough',
  attached: [4, 9],
};

let installed: Installed;

beforeAll(async () => {
  installed = await install();
  await writeFile(join(installed.folder, 'package.json'), '{ "type": "module" }');
});

afterAll(() => rm(installed.folder, { recursive: true }));

test.each(Object.entries(COMMANDS))('a program runs on %s', async (_, [binary, ...options]) => {
  const program = join(installed.folder, 'program.mjs');
  await copyFile(new URL('program.mjs', import.meta.url), program);
  const env = { ...process.env, CLOUDPAR_ENDPOINT: inject('endpoint'), CLOUDPAR_TOKEN: inject('token') };
  const { stdout, stderr } = await run(join(RUNTIMES, binary), [...options, program], { env, cwd: installed.folder });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual(EXPECTED);
});

describe.each(['5.4', '5.5', '5.6', '5.7', '5.8', '5.9', '6.0', '7.0'])(
  'TypeScript %s compiles a program',
  (version) => {
    const compiler = join(RUNTIMES, `typescript-${version}`);

    test.each([
      ['without the types of the DOM or of Node', BARE, ['consumer.ts', 'common.cts']],
      ['for ES2016', { ...BARE, target: 'ES2016', lib: ['ES2016'] }, ['consumer.ts']],
      ['with its own fetch and signals', { ...BARE, lib: ['ES2022', 'DOM'] }, ['fetches.ts']],
    ])('%s', async (_, settings, files) => {
      expect(await compile(installed.folder, compiler, { ...settings, module: 'NodeNext' }, files)).toBe('');
    });
  },
);

test('webpack bundles a program without the optional packages of AWS', async () => {
  const [entry, path] = [join(installed.folder, 'stack.mjs'), join(installed.folder, 'webpack')];
  await writeFile(entry, STACK_PROGRAM);
  const bundle = `const webpack = require(${JSON.stringify(join(RUNTIMES, 'webpack'))});
const settings = { mode: 'production', target: 'node', entry: ${JSON.stringify(entry)} };
webpack({ ...settings, output: { path: ${JSON.stringify(path)}, filename: 'main.cjs' } }, (error, stats) => {
  console.log(JSON.stringify(error ?? stats.toJson().errors.map(({ message }) => message)));
});`;
  expect((await run('node', ['-e', bundle], { cwd: installed.folder })).stdout).toBe('[]\n');
  expect((await run('node', [join(path, 'main.cjs')])).stdout).toMatch(PACKAGE_MISSING);
});
