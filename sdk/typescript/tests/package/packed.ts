// The package as npm installs it in a separate folder: the tarball's files and their dependencies, without the optional
// packages of AWS.

import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, readdir, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
export const MODULES = join(PACKAGE, '../../node_modules');
const DEPENDENCIES = ['@msgpack/msgpack', 'smol-toml'];

export const run = promisify(execFile);

/** A project with the packed package installed. */
export interface Installed {
  readonly folder: string;
  readonly tarball: string;
  readonly files: readonly string[];
}

/** Packs the built package and installs it. */
export async function install(): Promise<Installed> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'cloudpar-package-')));
  await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], { cwd: PACKAGE });
  const [name = ''] = await readdir(folder);
  const [tarball, place] = [join(folder, name), join(folder, 'node_modules/@cloudpar/sdk')];
  await mkdir(place, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', place, '--strip-components=1']);
  for (const dependency of DEPENDENCIES) {
    await mkdir(join(folder, 'node_modules', dependency, '..'), { recursive: true });
    await cp(join(MODULES, dependency), join(folder, 'node_modules', dependency), { recursive: true });
  }
  const { stdout } = await run('tar', ['-tzf', tarball]);
  return { folder, tarball, files: stdout.trim().split('\n').sort() };
}

/** Compiler options of programs without the types of the DOM and of Node, which also check libraries' types. */
export const BARE = { strict: true, skipLibCheck: false, noEmit: true, types: [], target: 'ES2022', lib: ['ES2022'] };

/** Compiles programs with the installed package; returns the compiler's output. */
export async function compile(
  folder: string,
  compiler: string,
  compilerOptions: object,
  files: string[],
): Promise<string> {
  for (const file of files) {
    await copyFile(new URL(file, import.meta.url), join(folder, file));
  }
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  const project = join(folder, 'tsconfig.json');
  await writeFile(project, JSON.stringify({ compilerOptions, files }));
  const { stdout } = await run('node', [join(compiler, 'bin/tsc'), '-p', project]).catch((error) => error);
  return stdout;
}

/** A program that reads a stack without the AWS packages which this needs, and its output. */
export const STACK_PROGRAM = `import { Pool } from '@cloudpar/sdk';
const open = Pool.open({ stack: 'S', token: 't' });
open.catch((error) => console.log(error.name, error.message));
`;
export const PACKAGE_MISSING =
  /^ConfigurationError a stack is read by @aws-sdk\/client-cloudformation, .*: npm install/;
