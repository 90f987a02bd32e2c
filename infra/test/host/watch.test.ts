import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../lib/host/watch.sh');
const HOOK = '--region eu-west-1 --auto-scaling-group-name workers --lifecycle-hook-name drain --instance-id i-1';
const COMPLETE = `aws autoscaling complete-lifecycle-action ${HOOK} --lifecycle-action-result CONTINUE`;
const HEARTBEAT = `aws autoscaling record-lifecycle-action-heartbeat ${HOOK}`;
const REPLACE =
  'aws autoscaling terminate-instance-in-auto-scaling-group --region eu-west-1 --instance-id i-1 ' +
  '--no-should-decrement-desired-capacity';
const STOP = 'systemctl stop --no-block cloudpar-worker.service';

/** A fake of the instance's metadata service, with sessions, and of the two programs that the script calls. */
class Host {
  readonly answers = new Map([['instance-id', 'i-1']]);
  readonly looks: string[] = [];
  private readonly folder = mkdtempSync(join(tmpdir(), 'cloudpar-host-'));
  private readonly server: Server;
  private sessions = 0;
  private process: ChildProcess | undefined;

  constructor() {
    this.server = createServer((request, response) => {
      const path = request.url?.replace('/latest/', '') ?? '';
      if (request.method === 'PUT' && path === 'api/token') {
        this.sessions += 1;
        response.end(`session-${this.sessions}`);
        return;
      }
      const known = request.headers['x-aws-ec2-metadata-token'] === `session-${this.sessions}`;
      const answer = this.answers.get(path.replace('meta-data/', ''));
      this.looks.push(path);
      response.writeHead(known ? (answer === undefined ? 404 : 200) : 401).end(known ? answer : '');
    });
    writeFileSync(join(this.folder, 'calls'), '');
    this.drained(false);
    this.program('aws', 'exit 0');
    this.program('systemctl', `if [[ $1 == show ]]; then cat "${this.folder}/state"; fi`);
  }

  async start(): Promise<void> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    const { port } = this.server.address() as AddressInfo;
    this.process = spawn('bash', [SCRIPT], {
      env: {
        PATH: `${this.folder}:${process.env['PATH']}`,
        CLOUDPAR_METADATA: `http://127.0.0.1:${port}/latest`,
        CLOUDPAR_REGION: 'eu-west-1',
        CLOUDPAR_GROUP: 'workers',
        CLOUDPAR_HOOK: 'drain',
        CLOUDPAR_LOOK_S: '0.05',
        CLOUDPAR_HEARTBEAT_S: '1',
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  }

  /** Waits for the script and returns its exit code. */
  async ended(): Promise<number | null> {
    const { process } = this;
    if (process && process.exitCode === null) {
      await once(process, 'exit');
    }
    return process?.exitCode ?? null;
  }

  /** Returns the script's calls of programs, without calls that only read. */
  calls(): string[] {
    const lines = readFileSync(join(this.folder, 'calls'), 'utf8').split('\n');
    return lines.filter((line) => line && !line.startsWith('systemctl show'));
  }

  drained(yes: boolean): void {
    writeFileSync(join(this.folder, 'state'), yes ? 'inactive\n' : 'deactivating\n');
  }

  forgetSessions(): void {
    this.sessions += 1;
  }

  program(name: string, body: string): void {
    const log = `echo "${name} $*" >> "${this.folder}/calls"`;
    writeFileSync(join(this.folder, name), `#!/usr/bin/env bash\n${log}\n${body}\n`, { mode: 0o755 });
  }

  async close(): Promise<void> {
    if (this.process?.exitCode === null) {
      this.process.kill('SIGKILL');
      await once(this.process, 'exit');
    }
    this.server.closeAllConnections();
    this.server.close();
  }
}

async function until(what: () => boolean): Promise<void> {
  while (!what()) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('watch.sh', () => {
  let host: Host;
  beforeEach(async () => {
    host = new Host();
    host.answers.set('autoscaling/target-lifecycle-state', 'InService');
    await host.start();
  });
  afterEach(() => host.close());

  it('checks for all three ends, and does nothing while none is announced', async () => {
    await until(() => host.looks.length > 20);
    for (const path of [
      'spot/instance-action',
      'autoscaling/target-lifecycle-state',
      'events/recommendations/rebalance',
    ]) {
      expect(host.looks).toContain(`meta-data/${path}`);
    }
    expect(host.calls()).toEqual([]);
  });

  it.each([
    ['a spot interruption', 'spot/instance-action', '{"action":"terminate","time":"2026-01-01T00:00:00Z"}', []],
    [
      'a rebalance recommendation',
      'events/recommendations/rebalance',
      '{"noticeTime":"2026-01-01T00:00:00Z"}',
      [REPLACE],
    ],
  ])('drains on %s, once; the hook is completed when the group takes the instance', async (_, path, notice, then) => {
    await until(() => host.looks.length > 5);
    host.answers.set(path, notice);
    await until(() => host.calls().length > 0);
    host.drained(true);
    const seen = host.looks.length;
    await until(() => host.looks.length > seen + 10);
    expect(host.calls()).toEqual([STOP, ...then]);
    host.answers.set('autoscaling/target-lifecycle-state', 'Terminated');
    expect(await host.ended()).toBe(0);
    expect(host.calls()).toEqual([STOP, ...then, COMPLETE]);
  });

  it('taken away by the group: keeps the hook waiting while the worker drains, then completes it', async () => {
    host.answers.set('autoscaling/target-lifecycle-state', 'Terminated');
    await until(() => host.calls().filter((call) => call === HEARTBEAT).length >= 2);
    expect(host.calls().slice(0, 2)).toEqual([STOP, HEARTBEAT]);
    expect(host.calls()).not.toContain(COMPLETE);
    host.drained(true);
    expect(await host.ended()).toBe(0);
    expect(host.calls().at(-1)).toBe(COMPLETE);
  });

  it('completes the hook again when that failed', async () => {
    host.drained(true);
    host.program('aws', `[[ $(grep -c complete "$(dirname "$0")/calls") -ge 3 ]]`);
    host.answers.set('autoscaling/target-lifecycle-state', 'Terminated');
    expect(await host.ended()).toBe(0);
    expect(host.calls()).toEqual([STOP, COMPLETE, COMPLETE, COMPLETE]);
  });

  it('opens another session when its own has ended', async () => {
    await until(() => host.looks.length > 5);
    host.forgetSessions();
    const seen = host.looks.length;
    await until(() => host.looks.length > seen + 20);
    host.answers.set('spot/instance-action', '{}');
    await until(() => host.calls().length > 0);
    expect(host.calls()).toEqual([STOP]);
  });
});
