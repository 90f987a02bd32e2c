import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NAME = 'CLOUDPAR_INFRA_TESTS';

/** Creates one folder for the files of all tests, and deletes it at the end. */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'cloudpar-infra-'));
  process.env[NAME] = folder;
  return () => {
    rmSync(folder, { recursive: true, force: true });
  };
}

/** Makes a new folder in the folder of the tests. */
export function freshFolder(): string {
  return mkdtempSync(join(process.env[NAME] ?? tmpdir(), 'cloudpar-'));
}
