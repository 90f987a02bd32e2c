// Starts a master and a worker of the last release, from the git history, for today's SDK.

import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { PACKAGE, PYTHON, start } from './embedded.ts';

/** The last commit of 0.2.0 without later changes, as in tests/system/mixture.py. */
const COMMIT = 'f76d7c74';
const FOLDERS = ['sdk/protocol', 'sdk/python', 'functions', 'worker'];

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const root = await mkdtemp(join(tmpdir(), 'cloudpar-0.2.0-'));
  const archive = ['archive', '--output', join(root, 'code.tar'), COMMIT, ...FOLDERS];
  await promisify(execFile)('git', archive, { cwd: join(PACKAGE, '../..') });
  execFileSync('tar', ['-x', '-C', root, '-f', join(root, 'code.tar')]);
  const code = FOLDERS.map((folder) => join(root, folder));
  const where = 'import cloudpar_protocol as found; print(found.__version__, found.__file__)';
  const { stdout } = await promisify(execFile)(PYTHON, ['-c', where], { env: { PYTHONPATH: code.join(':') } });
  if (!stdout.startsWith(`0.2.0 ${root}`)) {
    throw new Error(`this is not the code of 0.2.0: ${stdout}`);
  }
  const end = await start(project, code);
  return async () => {
    await end();
    await rm(root, { recursive: true });
  };
}
