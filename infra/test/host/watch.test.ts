import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freshFolder } from '../folder';

const SCRIPT = join(import.meta.dirname, '../../lib/host/watch.sh');
const HOOK = '--region eu-west-1 --auto-scaling-group-name workers --lifecycle-hook-name drain --instance-id i-1';
const COMPLETE = `aws autoscaling complete-lifecycle-action ${HOOK} --lifecycle-action-result CONTINUE`;
const HEARTBEAT = `aws autoscaling record-lifecycle-action-heartbeat ${HOOK}`;
const REPLACE =
  'aws autoscaling terminate-instance-in-auto-scaling-group --region eu-west-1 --instance-id i-1 ' +
  '--no-should-decrement-desired-capacity';
const END = REPLACE.replace('--no-should', '--should');
const CANCEL = 'shutdown -c';
const STOP = 'systemctl stop --no-block cloudpar-worker.service';

/** A fake of the instance's metadata service, with sessions, and of the two programs that the script calls. */
class Host {
  readonly answers = new Map([['instance-id', 'i-1']]);
  readonly looks: string[] = [];
  private readonly folder = freshFolder();
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
    this.program('shutdown', '');
    this.program('systemctl', `if [[ $1 == show ]]; then cat "${this.folder}/state"; fi`);
  }

  /** Makes a file of the worker as old as this many seconds. */
  sign(name: 'heard' | 'leased', age: number): void {
    const file = join(this.folder, name);
    writeFileSync(file, '');
    utimesSync(file, Date.now() / 1000 - age, Date.now() / 1000 - age);
  }

  async start(environment: Record<string, string> = {}): Promise<void> {
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
        CLOUDPAR_IDLE_S: '300',
        CLOUDPAR_TRIES: '3',
        CLOUDPAR_SIGNS: this.folder,
        ...environment,
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

  /** Returns the script's calls of programs, without calls that only read and without the cancelled power-off. */
  calls(): string[] {
    return this.log().filter((line) => line && !line.startsWith('systemctl show') && line !== CANCEL);
  }

  log(): string[] {
    return readFileSync(join(this.folder, 'calls'), 'utf8').split('\n');
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

  it('cancels the power-off that the first boot has scheduled', async () => {
    await until(() => host.log().includes(CANCEL));
  });

  it.each([
    ['idle', 10, 301],
    ['silent', 601, 601],
  ] as const)('ends an %s instance, and the group then wants one less', async (reason, heard, leased) => {
    host.sign('leased', leased);
    host.sign('heard', heard);
    await until(() => host.calls().length > 0);
    host.drained(reason === 'idle');
    await until(() => host.calls().includes(END));
    host.answers.set('autoscaling/target-lifecycle-state', 'Terminated');
    expect(await host.ended()).toBe(0);
    expect(host.calls()).toEqual([STOP, END, COMPLETE]);
  });

  it.each([
    ['whose worker has a lease', 601, 10],
    ['whose worker had one lately', 10, 250],
  ])('leaves an instance alone %s', async (_, heard, leased) => {
    host.sign('leased', leased);
    host.sign('heard', heard);
    await until(() => host.looks.length > 30);
    expect(host.calls()).toEqual([]);
  });

  it('counts the time without work from the first answer of the master, and not from the boot', async () => {
    host.sign('heard', 10);
    await until(() => host.looks.length > 30);
    expect(host.calls()).toEqual([]);
  });

  it('waits for the tasks that an idle worker has received just now', async () => {
    host.sign('leased', 301);
    host.sign('heard', 10);
    await until(() => host.calls().length > 0);
    const seen = host.looks.length;
    await until(() => host.looks.length > seen + 10);
    expect(host.calls()).toEqual([STOP]);
    host.drained(true);
    await until(() => host.calls().includes(END));
  });

  it('asks again when the group did not end the instance', async () => {
    host.drained(true);
    host.program('aws', `[[ $(grep -c terminate "$(dirname "$0")/calls") -ge 3 ]]`);
    host.sign('leased', 301);
    host.sign('heard', 10);
    await until(() => host.calls().filter((call) => call === END).length >= 3);
    const seen = host.looks.length;
    await until(() => host.looks.length > seen + 10);
    expect(host.calls()).toEqual([STOP, END, END, END]);
  });

  it('switches an instance off that cannot end itself otherwise', async () => {
    host.drained(true);
    host.program('aws', 'exit 1');
    host.sign('leased', 601);
    host.sign('heard', 601);
    expect(await host.ended()).toBe(0);
    expect(host.calls()).toEqual([STOP, END, END, END, 'systemctl poweroff']);
  });
});

describe('watch.sh on an instance whose worker never starts', () => {
  it('ends it after the time in which it should have worked', async () => {
    const host = new Host();
    await host.start({ CLOUDPAR_SILENT_S: '1' });
    await until(() => host.calls().includes(END));
    await host.close();
  });
});
