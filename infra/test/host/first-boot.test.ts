import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { template, text } from '../deployment';
import { freshFolder } from '../folder';

const HOST = join(import.meta.dirname, '../../lib/host');
const [data] = Object.values(template({ env: 'dev' }).findResources('AWS::EC2::LaunchTemplate')).map(
  ({ Properties }) => Properties.LaunchTemplateData,
);

const BOOT = [
  'shutdown --poweroff +15',
  'systemctl daemon-reload',
  'systemctl enable --now cloudpar-watch.service',
  'dnf install --assumeyes --quiet --releasever=latest docker',
  'systemctl enable --now docker.service',
  'systemctl enable --now cloudpar-worker.service',
];

describe('the first boot', () => {
  const root = freshFolder();
  const moved = (lines: string) => lines.replaceAll(/\/(?=(etc|opt)\/)/g, `${root}/`);
  const calls = join(root, 'calls');
  for (const program of ['dnf', 'shutdown', 'systemctl']) {
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

  it('gives the scripts the environment that they need', () => {
    const given = readFileSync(join(root, 'etc/cloudpar/worker.env'), 'utf8').matchAll(/^(\w+)=./gm);
    const asked = readdirSync(HOST).flatMap((name) => [
      ...readFileSync(join(HOST, name), 'utf8').matchAll(/\$\{(\w+):\?\}/g),
    ]);
    const names = (found: Iterable<RegExpMatchArray>) => [...new Set([...found].map(([, name]) => name))].sort();
    expect(names(asked)).toEqual(names(given));
  });

  it('schedules its own end, starts the unit that watches, and then installs the container engine', () => {
    expect(readFileSync(calls, 'utf8').trim().split('\n')).toEqual(BOOT);
  });
});

describe('a first boot that fails', () => {
  /** Runs the first boot with one call that fails, and returns the calls. */
  function boot(failing: string): string[] {
    const root = freshFolder();
    for (const program of ['shutdown', 'dnf', 'systemctl', 'mkdir', 'chmod', 'cat', 'sleep']) {
      const real = ['mkdir', 'chmod', 'cat'].includes(program) ? `exec /bin/${program} "$@"` : '';
      const body = `call="${program} $*"; echo "$call" >> ${root}/calls; [[ $call != "${failing}"* ]] || exit 1; ${real}`;
      writeFileSync(join(root, program), `#!/bin/bash\n${body}\n`, { mode: 0o755 });
    }
    const script = join(root, 'user-data');
    writeFileSync(script, text(data.UserData).replaceAll(/\/(?=(etc|opt)\/)/g, `${root}/`));
    spawnSync('bash', [script], { env: { PATH: `${root}:${process.env['PATH']}` } });
    return readFileSync(join(root, 'calls'), 'utf8').trim().split('\n');
  }

  it.each(['mkdir', 'cat', 'chmod', 'systemctl daemon-reload', 'systemctl enable --now cloudpar-watch'])(
    'before watch.sh runs, by %s, switches itself off',
    (failing) => {
      const calls = boot(failing);
      expect(calls[0]).toMatch(/^shutdown --poweroff \+15/);
      expect(calls).not.toContain('systemctl enable --now docker.service');
    },
  );

  it.each(['dnf', 'systemctl enable --now docker.service', 'systemctl enable --now cloudpar-worker.service'])(
    'later, by %s, is ended by watch.sh, which runs already',
    (failing) => {
      const calls = boot(failing);
      expect(calls).toContain('systemctl enable --now cloudpar-watch.service');
      expect(calls.findIndex((call) => call.startsWith(failing))).toBeGreaterThan(
        calls.indexOf('systemctl enable --now cloudpar-watch.service'),
      );
    },
  );

  it('goes on if it cannot schedule its own end', () => {
    expect(boot('shutdown')).toContain('systemctl enable --now cloudpar-worker.service');
  });
});
