import { existsSync } from 'node:fs';
import contract from './contract.json';
import { ENVIRONMENTS, type EnvironmentName, FAMILIES, KINDS, ONLY_NAMED } from './environments';

/**
 * How many vCPUs, and therefore executors, an instance of each size has. The numbers hold for all families of
 * environments.ts.
 */
export const EXECUTORS = { large: 2, xlarge: 4, '2xlarge': 8, '4xlarge': 16, '8xlarge': 32 } as const;
export type InstanceSize = keyof typeof EXECUTORS;
const IMAGE_BUILDS = ['docker', 'codebuild'] as const;
export type Architecture = 'arm64' | 'x86_64';

/** The settings with a default in environments.ts. */
export interface EnvironmentSettings {
  /** Whether tables, bucket and worker token outlive the stack; if so, `cloudpar deploy` protects the tables as well. */
  readonly retain: boolean;
  /** Whether the tables have point-in-time recovery. */
  readonly recovery: boolean;
  readonly logDays: number;
  readonly logLevel: string;
  /** How many requests of clients the API accepts a second (the rate), and how many at once (the burst). */
  readonly rateLimit: number;
  readonly burstLimit: number;
  readonly maxInstances: number;
  readonly instanceSize: InstanceSize;
  readonly zones: number;
  readonly volumeGib: number;
  /** While the duration of a package's tasks is unknown, the fleet gets one executor for this many of its chunks. */
  readonly backlogPerExecutor: number;
  /** An instance ends itself after this many minutes without work. */
  readonly idleMinutes: number;
  /**
   * How long running tasks may continue after the group has decided to remove their instance. A spot interruption
   * leaves only 2 minutes.
   */
  readonly drainMinutes: number;
}

/** The settings of a deployment. The context may give each of them (`-c name=value`). */
export interface Settings extends EnvironmentSettings {
  /** The environment: dev, staging or prod. */
  readonly env: EnvironmentName;
  /** The folder with the functions' code, which functions/bundle.sh makes. */
  readonly bundle: string;
  /** Names of existing tables, such as restored ones, that replace the stack's own. */
  readonly packageTable: string | undefined;
  readonly accountTable: string | undefined;
  /**
   * How many requests a second the API accepts on each route of the workers. The default suits the largest fleet, see
   * workerRate.
   */
  readonly workerRateLimit: number;
  /**
   * How many concurrent calls are reserved for each function of the API; a function then cannot have more. With 0 none
   * are reserved, and the functions share the concurrency of the AWS account.
   */
  readonly reservedConcurrency: number;
  /**
   * The limits of an account, by their names in the master's policy. contract.json contains the largest permitted value
   * of each limit. For `running_packages` this value is low, since each start of a package reads all running packages
   * of its account.
   */
  readonly limits: Readonly<Record<string, number>>;
  readonly architectures: readonly Architecture[];
  /** The GiB of memory for each core, and so for each executor, if no families are named. */
  readonly memoryPerCore: number;
  /**
   * Instance families of the fleet, without those that the context names as `unavailableFamilies`. If a group names a
   * family that the region lacks, AWS may refuse the group.
   */
  readonly families: readonly string[];
  /**
   * An existing VPC and subnets of it, in which the instances start instead of in a VPC of the stack. The subnets need a
   * route to the internet.
   */
  readonly vpcId: string | undefined;
  readonly subnetIds: readonly string[];
  /**
   * The interface endpoint of this VPC for execute-api. With it the API is private: requests reach the API only through
   * the endpoint.
   */
  readonly apiVpcEndpoint: string | undefined;
  /** How many of the first instances are on-demand; the others are spot instances. */
  readonly onDemandBase: number;
  /** An image for both architectures, used instead of an image built from worker/Dockerfile. */
  readonly workerImage: string | undefined;
  /** What builds worker/Dockerfile: docker on this machine, or AWS CodeBuild during the deployment. */
  readonly imageBuild: (typeof IMAGE_BUILDS)[number];
  /** A requirements file whose packages are installed into the image. */
  readonly requirements: string | undefined;
  /** The Python versions in the image. */
  readonly pythons: readonly string[];
  /** The Python version of the worker's agent. */
  readonly python: string;
  /** Whether there is a CloudWatch dashboard, which costs about 3 USD a month. */
  readonly dashboard: boolean;
  /**
   * Whether X-Ray traces the functions of requests: the first request to each in a second, and 5 % of the others. A
   * million traces cost 5 USD.
   */
  readonly tracing: boolean;
  /** The address that gets the alarms. */
  readonly alarmEmail: string | undefined;
  /**
   * The budget of the whole AWS account for a month, in USD; 0: there is none. CloudFormation refuses a template with a
   * budget in some regions, and therefore none is the default.
   */
  readonly budgetUsd: number;
  /** The given settings, as text. The stack keeps them, so that the next deployment starts from them. */
  readonly recorded: Readonly<Record<string, string>>;
}

/**
 * Names in the context that are not recorded as settings: they name the deployment, properties of this machine or
 * region, or settings to unset.
 */
const NOT_RECORDED = ['env', 'bundle', 'unavailableFamilies', 'unset', 'recorded', 'limits'];

const LIMITS = Object.keys(contract.largestLimits) as (keyof typeof contract.largestLimits)[];

/** The setting that changes a limit: `running_packages` is set by `runningPackages`. */
function settingOf(limit: string): string {
  return limit.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * How many requests a second the largest fleet may send on one route. Each instance has one agent. While the agent is
 * idle, it sends at most 5 requests a second. While it works, it sends less than 2 a second for each executor.
 */
function workerRate(instances: number, executors: number): number {
  return instances * Math.max(5, 2 * executors);
}

/** A setting has a value that cannot be used. The message names the setting and says what to do. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/**
 * Returns the value of a name in the context. A value given by `-c` is text; a value in cdk.json may have another type.
 */
export type Context = (name: string) => unknown;

/**
 * Returns the settings of one deployment: those of its environment, overridden by the context. Throws SettingsError.
 *
 * @param given All names in the context, so that a misspelt one is an error.
 */
export function readSettings(context: Context, given: readonly string[] = []): Settings {
  const env = environmentName(context('env'));
  const defaults = ENVIRONMENTS[env];
  const read = new Reader(context);
  const maxInstances = read.whole('maxInstances', defaults.maxInstances, 1, 1_000);
  const instanceSize = read.oneOf('instanceSize', defaults.instanceSize, Object.keys(EXECUTORS)) as InstanceSize;
  const pythons = read.list('pythons', contract.pythons, contract.pythons);
  const families: readonly string[] = Object.values(FAMILIES).flat();
  const memoryPerCore = Number(read.oneOf('memoryPerCore', '2', Object.keys(KINDS))) as keyof typeof KINDS;
  const kind = KINDS[memoryPerCore];
  const byDefault = families.filter((family) => !ONLY_NAMED.includes(family) && family.startsWith(kind));
  const settings: Settings = {
    env,
    bundle: read.text('bundle') ?? 'build/functions',
    retain: read.flag('retain', defaults.retain),
    recovery: read.flag('recovery', defaults.recovery),
    packageTable: read.text('packageTable'),
    accountTable: read.text('accountTable'),
    logDays: read.days('logDays', defaults.logDays),
    logLevel: read.oneOf('logLevel', defaults.logLevel, ['DEBUG', 'INFO', 'WARNING', 'ERROR']),
    rateLimit: read.whole('rateLimit', defaults.rateLimit, 1, 100_000),
    burstLimit: read.whole('burstLimit', defaults.burstLimit, 1, 100_000),
    workerRateLimit: read.whole('workerRateLimit', workerRate(maxInstances, EXECUTORS[instanceSize]), 1, 100_000),
    reservedConcurrency: read.whole('reservedConcurrency', 0, 0, 1_000),
    limits: Object.fromEntries(
      LIMITS.map((limit) => [
        limit,
        read.whole(settingOf(limit), contract.policy[limit], 1, contract.largestLimits[limit]),
      ]),
    ),
    maxInstances,
    instanceSize,
    architectures: read.list('architectures', ['arm64', 'x86_64'], ['arm64', 'x86_64']) as Architecture[],
    memoryPerCore,
    families: read
      .list('families', byDefault, families)
      .filter((family) => !read.list('unavailableFamilies', [], families).includes(family)),
    onDemandBase: read.whole('onDemandBase', 0, 0, maxInstances),
    vpcId: read.id('vpcId', 'vpc'),
    subnetIds: read.ids('subnetIds', 'subnet'),
    apiVpcEndpoint: read.id('apiVpcEndpoint', 'vpce'),
    zones: read.whole('zones', defaults.zones, 2, 6),
    volumeGib: read.whole('volumeGib', defaults.volumeGib, 10, 1_000),
    backlogPerExecutor: read.whole('backlogPerExecutor', defaults.backlogPerExecutor, 1, 1_000),
    idleMinutes: read.whole('idleMinutes', defaults.idleMinutes, 5, 60),
    drainMinutes: read.whole('drainMinutes', defaults.drainMinutes, 2, 360),
    workerImage: imageName(read.text('workerImage')),
    imageBuild: read.oneOf('imageBuild', 'docker', IMAGE_BUILDS) as Settings['imageBuild'],
    requirements: read.file('requirements'),
    pythons,
    python: read.oneOf('python', pythons.includes('3.13') ? '3.13' : (pythons.at(-1) as string), pythons),
    dashboard: read.flag('dashboard', false),
    tracing: read.flag('tracing', false),
    alarmEmail: emailAddress(read.text('alarmEmail')),
    budgetUsd: read.whole('budgetUsd', 0, 0, 10_000_000),
    recorded: record(context, given),
  };
  if (settings.budgetUsd > 0 && settings.alarmEmail === undefined) {
    throw new SettingsError('budgetUsd needs an address that gets its mails: add alarmEmail');
  }
  if (settings.workerImage && settings.requirements) {
    throw new SettingsError(
      'workerImage and requirements exclude each other: a given image is used as it is. ' +
        'Leave workerImage out, or install the packages into that image yourself.',
    );
  }
  if (settings.workerImage && read.text('imageBuild')) {
    throw new SettingsError(
      'workerImage and imageBuild exclude each other: a given image is not built. Leave one out (--unset imageBuild).',
    );
  }
  if (read.text('memoryPerCore') && read.text('families')) {
    throw new SettingsError(
      'memoryPerCore and families exclude each other: families already have their memory. Leave one of the two out.',
    );
  }
  if ((settings.packageTable === undefined) !== (settings.accountTable === undefined)) {
    throw new SettingsError(
      'packageTable and accountTable belong together: a package reserves what its account has. Name both, restored to ' +
        'the same moment, or neither.',
    );
  }
  if ((settings.vpcId === undefined) !== (settings.subnetIds.length === 0)) {
    throw new SettingsError(
      settings.vpcId === undefined
        ? 'subnetIds needs the VPC of these subnets: add vpcId=vpc-..., or leave subnetIds out for a VPC of the stack'
        : 'vpcId needs the subnets for the instances: add subnetIds=subnet-...,subnet-... of this VPC, or leave vpcId ' +
            'out for a VPC of the stack',
    );
  }
  if (settings.apiVpcEndpoint && settings.vpcId === undefined) {
    throw new SettingsError(
      'apiVpcEndpoint needs its VPC for the instances: add vpcId=vpc-... and subnetIds=subnet-..., since nothing else ' +
        'reaches a private API',
    );
  }
  if (settings.vpcId && read.text('zones')) {
    throw new SettingsError('zones and vpcId exclude each other: the subnets determine the zones. Leave zones out.');
  }
  for (const architecture of settings.architectures) {
    if (!FAMILIES[architecture].some((family) => settings.families.includes(family))) {
      throw new SettingsError(
        `families=${settings.families.join(',')} has none for ${architecture}: add one of ` +
          `${FAMILIES[architecture].join(', ')}, or leave ${architecture} out of architectures`,
      );
    }
  }
  const names = [...Object.keys(settings), ...LIMITS.map(settingOf)].filter((name) => !NOT_RECORDED.includes(name));
  refuseStrangers(given, [...names, ...NOT_RECORDED]);
  refuseStrangers(read.text('unset')?.split(',') ?? [], names);
  return settings;
}

function record(context: Context, given: readonly string[]): Record<string, string> {
  const names = given.filter((name) => /^[a-zA-Z]+$/.test(name) && !NOT_RECORDED.includes(name)).toSorted();
  return Object.fromEntries(names.map((name) => [name, String(context(name))]));
}

/** Refuses misspelt names. The CDK's own names are not checked: they contain characters that are not letters. */
function refuseStrangers(given: readonly string[], known: readonly string[]): void {
  const stranger = given.find((name) => /^[a-zA-Z]+$/.test(name) && !known.includes(name));
  if (stranger !== undefined) {
    const names = known.filter((name) => name !== 'unset' && name !== 'recorded').toSorted();
    throw new SettingsError(`${stranger}: there is no such setting; there are ${names.join(', ')}`);
  }
}

function environmentName(value: unknown): EnvironmentName {
  if (typeof value === 'string' && Object.hasOwn(ENVIRONMENTS, value)) {
    return value as EnvironmentName;
  }
  const names = Object.keys(ENVIRONMENTS).join(', ');
  throw new SettingsError(
    value === undefined
      ? `no environment: add -c env=NAME, NAME one of ${names}`
      : `env=${String(value)} is no environment: use one of ${names}, or add it to infra/lib/environments.ts`,
  );
}

/**
 * Checks that an image's name has a tag or a digest. Without a tag or digest, the name would stay the same when the
 * image changes, and AWS would not refresh the instances.
 */
function imageName(value: string | undefined): string | undefined {
  if (value !== undefined && !/^[a-z0-9][\w./:-]*(:[\w.-]+|@sha256:[0-9a-f]{64})$/.test(value)) {
    throw new SettingsError(
      `workerImage=${value} is no image with a tag or digest: write REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:...`,
    );
  }
  return value;
}

function emailAddress(value: string | undefined): string | undefined {
  if (value !== undefined && !/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(value)) {
    throw new SettingsError(`alarmEmail=${value} is no e-mail address`);
  }
  return value;
}

const LOG_DAYS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

/** Whether a text is an id as AWS makes it for this kind of resource: older ids have 8 digits, newer ones 17. */
function isId(text: string, kind: string): boolean {
  return new RegExp(`^${kind}-([0-9a-f]{8}|[0-9a-f]{17})$`).test(text);
}

class Reader {
  constructor(private readonly context: Context) {}

  text(name: string): string | undefined {
    const value = this.context(name);
    if (value === undefined || value === '') {
      return undefined;
    }
    if (typeof value !== 'string') {
      throw new SettingsError(`${name} must be text, not ${JSON.stringify(value)}`);
    }
    return value;
  }

  file(name: string): string | undefined {
    const path = this.text(name);
    if (path !== undefined && !existsSync(path)) {
      throw new SettingsError(`${name}=${path}: there is no such file; paths start where cdk runs`);
    }
    return path;
  }

  flag(name: string, otherwise: boolean): boolean {
    const value = this.context(name) ?? otherwise;
    if (value === true || value === 'true') {
      return true;
    }
    if (value === false || value === 'false') {
      return false;
    }
    throw new SettingsError(`${name}=${String(value)} must be true or false`);
  }

  whole(name: string, otherwise: number, least: number, most: number): number {
    const given = this.context(name) ?? otherwise;
    const value = typeof given === 'string' && given.trim() ? Number(given) : given;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
      throw new SettingsError(`${name}=${String(given)} must be a whole number from ${least} to ${most}`);
    }
    return value;
  }

  /** Reads a number of days, and accepts only numbers of days for which CloudWatch can keep logs. */
  days(name: string, otherwise: number): number {
    const value = this.whole(name, otherwise, 1, 3_653);
    if (!LOG_DAYS.includes(value)) {
      throw new SettingsError(`${name}=${value} must be one of ${LOG_DAYS.join(', ')}`);
    }
    return value;
  }

  oneOf(name: string, otherwise: string, allowed: readonly string[]): string {
    const value = this.text(name) ?? otherwise;
    if (!allowed.includes(value)) {
      throw new SettingsError(`${name}=${value} must be one of ${allowed.join(', ')}`);
    }
    return value;
  }

  /** Reads an id that AWS has made, such as vpc-0123abcd. */
  id(name: string, kind: string): string | undefined {
    const value = this.text(name)?.trim();
    if (value !== undefined && !isId(value, kind)) {
      throw new SettingsError(`${name}=${value} is no id of AWS: write ${kind}-, followed by its hexadecimal digits`);
    }
    return value;
  }

  /** Reads a list of ids that AWS has made, each at most once. */
  ids(name: string, kind: string): string[] {
    const values =
      this.text(name)
        ?.split(',')
        .map((value) => value.trim()) ?? [];
    if (!values.every((value) => isId(value, kind)) || new Set(values).size !== values.length) {
      throw new SettingsError(
        `${name}=${values.join(',')} must be a list of ids, each at most once: write ${kind}-0123abcd,${kind}-4567cdef`,
      );
    }
    return values;
  }

  list(name: string, otherwise: readonly string[], allowed: readonly string[]): string[] {
    const given = this.text(name);
    const values = given?.split(',').map((value) => value.trim()) ?? otherwise;
    const stranger = values.find((value) => !allowed.includes(value));
    if (stranger !== undefined || new Set(values).size !== values.length) {
      throw new SettingsError(`${name}=${given} must be a list, each at most once, of ${allowed.join(', ')}`);
    }
    return [...values];
  }
}
