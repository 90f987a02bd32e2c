import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NAME = 'CLOUDPAR_INFRA_TESTS';

/** What all tests leave lies in one folder, which goes with them. */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'cloudpar-infra-'));
  process.env[NAME] = folder;
  return () => {
    rmSync(folder, { recursive: true, force: true });
  };
}

/** A new folder in it. */
export function freshFolder(): string {
  return mkdtempSync(join(process.env[NAME] ?? tmpdir(), 'cloudpar-'));
}
