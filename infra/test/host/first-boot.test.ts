import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { template, text } from '../deployment';

const HOST = join(import.meta.dirname, '../../lib/host');
const [data] = Object.values(template({ env: 'dev' }).findResources('AWS::EC2::LaunchTemplate')).map(
  ({ Properties }) => Properties.LaunchTemplateData,
);

describe('the first boot', () => {
  const root = mkdtempSync(join(tmpdir(), 'cloudpar-boot-'));
  const moved = (lines: string) => lines.replaceAll(/\/(?=(etc|opt)\/)/g, `${root}/`);
  const calls = join(root, 'calls');
  for (const program of ['dnf', 'systemctl']) {
    writeFileSync(join(root, program), `#!/usr/bin/env bash\necho "${program} $*" >> ${calls}\n`, { mode: 0o755 });
  }
  const script = join(root, 'user-data');
  writeFileSync(script, moved(text(data.UserData)));
  execFileSync('bash', [script], {
    env: { PATH: `${root}:${process.env['PATH']}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });

  it('writes every file of host/, without its comments, and the scripts can be read', () => {
    const written = { '.sh': join(root, 'opt/cloudpar'), '.service': join(root, 'etc/systemd/system') };
    for (const name of readdirSync(HOST)) {
      const file = join(written[name.endsWith('.sh') ? '.sh' : '.service'], name);
      const source = readFileSync(join(HOST, name), 'utf8').replaceAll(/^[ \t]*#(?!!).*\n/gm, '');
      expect(readFileSync(file, 'utf8')).toBe(moved(source));
      if (name.endsWith('.sh')) {
        execFileSync('bash', ['-n', file]);
      }
    }
  });

  it('gives the scripts the environment that they ask for', () => {
    const given = readFileSync(join(root, 'etc/cloudpar/worker.env'), 'utf8').matchAll(/^(\w+)=./gm);
    const asked = readdirSync(HOST).flatMap((name) => [
      ...readFileSync(join(HOST, name), 'utf8').matchAll(/\$\{(\w+):\?\}/g),
    ]);
    const names = (found: Iterable<RegExpMatchArray>) => [...new Set([...found].map(([, name]) => name))].sort();
    expect(names(asked)).toEqual(names(given));
  });

  it('installs the container engine and starts the units', () => {
    expect(readFileSync(calls, 'utf8').trim().split('\n')).toEqual([
      'dnf install --assumeyes --quiet --releasever=latest docker',
      'systemctl daemon-reload',
      'systemctl enable --now docker.service',
      'systemctl enable --now cloudpar-watch.service cloudpar-worker.service',
    ]);
  });
});
