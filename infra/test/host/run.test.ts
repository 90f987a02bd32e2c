import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { freshFolder } from '../folder';

const HOST = join(import.meta.dirname, '../../lib/host');

const RULE = 'DOCKER-USER --destination 169.254.169.254 --protocol tcp --jump REJECT --reject-with tcp-reset';

describe('scripts around the container', () => {
  let folder: string;
  const calls = () =>
    existsSync(join(folder, 'calls')) ? readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n') : [];

  function program(name: string, body: string): void {
    const log = `echo "${name} $*" >> "${folder}/calls"`;
    writeFileSync(join(folder, name), `#!/usr/bin/env bash\n${log}\n${body}\n`, { mode: 0o755 });
  }

  /** Runs a script and returns its standard error. */
  function run(script: string, environment: Record<string, string> = {}): string {
    const ended = spawnSync('bash', [join(HOST, script)], {
      encoding: 'utf8',
      env: {
        PATH: `${folder}:${process.env['PATH']}`,
        CLOUDPAR_REGION: 'eu-west-1',
        CLOUDPAR_ENDPOINT: 'https://api.example.com',
        CLOUDPAR_TOKEN_SECRET: 'arn:secret',
        CLOUDPAR_TOKEN_FILE: join(folder, 'run/token'),
        CLOUDPAR_SIGNS: join(folder, 'run/signs'),
        CLOUDPAR_IMAGE: 'example/worker:1',
        CLOUDPAR_PYTHON: '3.13',
        CLOUDPAR_LOG_GROUP: 'log',
        CLOUDPAR_METADATA: 'http://127.0.0.1:1/latest',
        ...environment,
      },
    });
    expect(ended.status, ended.stderr).toBe(0);
    return ended.stderr;
  }

  beforeEach(() => {
    folder = freshFolder();
    program('docker', 'if [[ $1 == login ]]; then cat > /dev/null; fi');
    program('aws', 'echo tok');
    program('chown', '');
    program('curl', 'echo i-1');
    program('iptables', '[[ $* != *--check* ]]');
  });

  it('prepare.sh leaves the token where only root reads it, and pulls the image', () => {
    run('prepare.sh');
    const token = join(folder, 'run/token');
    expect(readFileSync(token, 'utf8')).toBe('tok\n');
    expect(statSync(token).mode & 0o777).toBe(0o600);
    expect(calls()).toEqual([
      'aws secretsmanager get-secret-value --region eu-west-1 --secret-id arn:secret --query SecretString --output text',
      `chown 10001:10001 ${folder}/run/signs`,
      `iptables --wait --check ${RULE}`,
      `iptables --wait --insert ${RULE}`,
      'docker pull --quiet example/worker:1',
      'docker rm --force cloudpar-worker',
    ]);
  });

  it('prepare.sh adds the firewall rule for the instance metadata once', () => {
    program('iptables', '');
    run('prepare.sh');
    expect(calls().filter((call) => call.startsWith('iptables'))).toEqual([`iptables --wait --check ${RULE}`]);
  });

  it('prepare.sh continues with a message if there is no firewall', () => {
    program('iptables', 'false');
    expect(run('prepare.sh')).toContain('no firewall before the instance metadata');
    expect(calls()).toContain('docker pull --quiet example/worker:1');
  });

  it("prepare.sh logs in to a registry of the account's, in its region", () => {
    run('prepare.sh', { CLOUDPAR_IMAGE: '123456789012.dkr.ecr.us-east-2.amazonaws.com/worker:1' });
    expect(calls()).toContain('aws ecr get-login-password --region us-east-2');
    expect(calls()).toContain(
      'docker login --username AWS --password-stdin 123456789012.dkr.ecr.us-east-2.amazonaws.com',
    );
  });

  it('prepare.sh fails without a token, and leaves none', () => {
    program('aws', 'exit 1');
    expect(() => run('prepare.sh')).toThrow();
    expect(existsSync(join(folder, 'run/token'))).toBe(false);
  });

  it.each([
    ['aws', 'exit 1'],
    ['chown', 'exit 1'],
    ['docker', '[[ $1 != pull ]]'],
    ['docker', '[[ $1 != login ]]'],
  ])('prepare.sh fails if %s does, so that the worker does not start: %s', (name, body) => {
    program(name, body);
    const image = '123456789012.dkr.ecr.us-east-2.amazonaws.com/worker:1';
    expect(() => run('prepare.sh', { CLOUDPAR_IMAGE: image })).toThrow();
  });

  it('run.sh gives the container three capabilities, no place to write but /tmp and its signs, and no token in its environment', () => {
    run('run.sh');
    const started = calls().find((call) => call.startsWith('docker run')) ?? '';
    for (const part of [
      '--read-only',
      '--cap-drop ALL --cap-add SETUID --cap-add SETGID --cap-add KILL ',
      '--security-opt no-new-privileges',
      '--hostname i-1 --network bridge',
      '--tmpfs /tmp:rw,nosuid,nodev,exec,mode=1777,size=',
      `--mount type=bind,source=${folder}/run/token,target=/run/cloudpar/worker-token,readonly`,
      `--mount type=bind,source=${folder}/run/signs,target=/run/cloudpar/signs `,
      '--env CLOUDPAR_ENDPOINT=https://api.example.com --env CLOUDPAR_PYTHON=3.13',
      '--log-opt awslogs-stream=i-1',
    ]) {
      expect(started).toContain(part);
    }
    expect(started.match(/--cap-add/g)).toHaveLength(3);
    expect(started.match(/--mount/g)).toHaveLength(2);
    expect(started.match(/--env (\w+)/g)).toEqual(['--env CLOUDPAR_ENDPOINT', '--env CLOUDPAR_PYTHON']);
    expect(started).not.toMatch(/privileged |--volume|docker\.sock|--network host/);
    expect(started.endsWith(' example/worker:1')).toBe(true);
  });

  it.each([2, 16, 32])('run.sh leaves processes for the worker when each of %i executors has its 512', (processors) => {
    program('nproc', `echo ${processors}`);
    run('run.sh');
    const limit = /--pids-limit (\d+) /.exec(calls().find((call) => call.startsWith('docker run')) ?? '')?.[1];
    expect(Number(limit)).toBe(512 * processors + 1024);
  });
});
