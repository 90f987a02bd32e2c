import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Duration } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';

const HOST = join(import.meta.dirname, 'host');
/**
 * After how long an instance switches itself off if watch.sh does not run on it. The group then replaces the instance.
 */
const POWER_OFF = Duration.minutes(15);
const END = '__CLOUDPAR_END__';

/**
 * Returns the user data of an instance: a script that AWS runs at the first boot. The script writes the files of host/
 * and runs setup.sh. It contains no secret.
 *
 * @param environment The environment of the scripts and units of host/; the script writes it to
 *   /etc/cloudpar/worker.env.
 */
export function userData(environment: Readonly<Record<string, string>>, drainS: number): ec2.UserData {
  const data = ec2.UserData.forLinux();
  data.addCommands(
    // Ends this instance if its first boot fails before watch.sh runs. Otherwise watch.sh cancels this shutdown.
    `shutdown --poweroff +${POWER_OFF.toMinutes()} || true`,
    'set -eu',
    'mkdir -p /etc/cloudpar /opt/cloudpar /etc/systemd/system/cloudpar-worker.service.d',
  );
  write(
    data,
    '/etc/cloudpar/worker.env',
    Object.entries(environment).map(([name, value]) => `${name}=${value}`),
  );
  for (const script of ['setup.sh', 'prepare.sh', 'run.sh', 'watch.sh']) {
    write(data, `/opt/cloudpar/${script}`, [read(script)]);
  }
  for (const unit of ['cloudpar-worker.service', 'cloudpar-watch.service']) {
    write(data, `/etc/systemd/system/${unit}`, [read(unit)]);
  }
  write(data, '/etc/systemd/system/cloudpar-worker.service.d/drain.conf', ['[Service]', `TimeoutStopSec=${drainS}`]);
  data.addCommands('chmod +x /opt/cloudpar/*.sh', '/opt/cloudpar/setup.sh');
  return data;
}

/** Reads a host file without its comments, since user data is limited to 16 KB. */
function read(name: string): string {
  const lines = readFileSync(join(HOST, name), 'utf8').trimEnd().split('\n');
  return lines.filter((line, number) => number === 0 || !/^\s*#/.test(line)).join('\n');
}

function write(data: ec2.UserData, path: string, lines: readonly string[]): void {
  data.addCommands(`cat > ${path} <<'${END}'`, ...lines, END);
}
