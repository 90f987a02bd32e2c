import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build as esbuild } from 'esbuild';
import { publint } from 'publint';
import { build as vite } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  BARE,
  compile,
  type Installed,
  install,
  MODULES,
  PACKAGE,
  PACKAGE_MISSING,
  run,
  STACK_PROGRAM,
} from './packed.ts';

let installed: Installed;

beforeAll(async () => {
  installed = await install();
});

afterAll(() => rm(installed.folder, { recursive: true }));

test('the tarball has the licence, the README, and one file of types for each kind of module', async () => {
  const built = ['index.cjs', 'index.cjs.map', 'index.d.cts', 'index.d.ts', 'index.js', 'index.js.map'];
  const own = ['LICENSE', 'README.md', ...built.map((name) => `dist/${name}`), 'package.json'];
  expect(installed.files).toEqual(own.map((name) => `package/${name}`));
  const licences = [join(PACKAGE, 'LICENSE'), join(PACKAGE, '../../LICENSE')].map((path) => readFile(path, 'utf8'));
  const [copy, original] = await Promise.all(licences);
  expect(copy).toBe(original);
});

test('publint finds nothing', async () => {
  expect((await publint({ pkgDir: PACKAGE, pack: false, strict: true })).messages).toEqual([]);
});

test('the types are right for every way to import the package', async () => {
  const attw = join(MODULES, '.bin/attw');
  const { stdout } = await run(attw, ['--format', 'json', installed.tarball]);
  expect((JSON.parse(stdout) as { problems?: unknown }).problems ?? {}).toEqual({});
});

describe('the types need no settings', () => {
  const typescript = join(MODULES, 'typescript');

  test('in an ES module without the types of the DOM or of Node', async () => {
    const settings = { ...BARE, module: 'NodeNext', exactOptionalPropertyTypes: true };
    expect(await compile(installed.folder, typescript, settings, ['consumer.ts'])).toBe('');
  });

  test('with the target and the libraries that `tsc --init` of 5.8 writes', async () => {
    const settings = { ...BARE, module: 'NodeNext', target: 'ES2016', lib: ['ES2016'] };
    expect(await compile(installed.folder, typescript, settings, ['consumer.ts'])).toBe('');
  });

  test('in a CommonJS module, as TypeScript resolved modules before Node knew ES modules', async () => {
    const settings = { ...BARE, module: 'CommonJS', moduleResolution: 'Node' };
    expect(await compile(installed.folder, typescript, settings, ['common.cts'])).toBe('');
  });
});

describe('without the optional packages of AWS', () => {
  beforeAll(() => writeFile(join(installed.folder, 'program.mjs'), STACK_PROGRAM));

  test('esbuild bundles a program', async () => {
    const [entry, outfile] = [join(installed.folder, 'program.mjs'), join(installed.folder, 'esbuild/out.mjs')];
    const options = { bundle: true, platform: 'node', format: 'esm', logLevel: 'silent', minify: true } as const;
    const { errors } = await esbuild({ entryPoints: [entry], outfile, ...options });
    expect(errors).toEqual([]);
    expect((await run('node', [outfile])).stdout).toMatch(PACKAGE_MISSING);
  });

  test('vite bundles a program', async () => {
    const outDir = join(installed.folder, 'vite');
    await vite({
      root: installed.folder,
      configFile: false,
      logLevel: 'silent',
      ssr: { noExternal: true },
      build: { ssr: join(installed.folder, 'program.mjs'), outDir },
    });
    expect((await run('node', [join(outDir, 'program.js')])).stdout).toMatch(PACKAGE_MISSING);
  });

  test('a program runs as an ES module and by require', async () => {
    expect((await run('node', [join(installed.folder, 'program.mjs')])).stdout).toMatch(PACKAGE_MISSING);
    const required = STACK_PROGRAM.replace(/import (.*) from (.*);/, 'const $1 = require($2);');
    await writeFile(join(installed.folder, 'program.cjs'), required);
    expect((await run('node', [join(installed.folder, 'program.cjs')])).stdout).toMatch(PACKAGE_MISSING);
  });

  test('a program that requires and imports the package has its classes once', async () => {
    const both = `import { createRequire } from 'node:module';
import { CloudparError } from '@cloudpar/sdk';
const required = createRequire(import.meta.url)('@cloudpar/sdk');
console.log(required.CloudparError === CloudparError);
`;
    await writeFile(join(installed.folder, 'both.mjs'), both);
    expect((await run('node', [join(installed.folder, 'both.mjs')])).stdout).toBe('true\n');
  });
});

test('TypeDoc has nothing to warn of in the reference', async () => {
  const { stdout, stderr } = await run(join(MODULES, '.bin/typedoc'), ['--emit', 'none'], { cwd: PACKAGE }).catch(
    (error) => error,
  );
  expect(`${stdout}${stderr}`).not.toMatch(/\[(warning|error)\]/);
});
