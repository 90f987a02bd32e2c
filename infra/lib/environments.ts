import type { EnvironmentSettings } from './settings';

/**
 * The settings that the environments share; an environment may override each of them. By default a task may run for an
 * hour (contract.json), so the drain of an instance may last a little longer than an hour.
 */
const ALIKE = {
  logLevel: 'INFO',
  maxInstances: 4,
  instanceSize: 'xlarge',
  zones: 2,
  volumeGib: 20,
  backlogPerExecutor: 2,
  idleMinutes: 10,
  drainMinutes: 65,
} as const;

/** The settings of each environment. settings.ts describes each setting; `-c name=value` overrides a setting. */
export const ENVIRONMENTS = {
  dev: {
    ...ALIKE,
    retain: false,
    recovery: false,
    logDays: 7,
    rateLimit: 50,
    burstLimit: 200,
    instanceSize: 'large',
    idleMinutes: 5,
    drainMinutes: 10,
  },
  staging: { ...ALIKE, retain: false, recovery: false, logDays: 14, rateLimit: 100, burstLimit: 400 },
  prod: { ...ALIKE, retain: true, recovery: true, logDays: 90, rateLimit: 200, burstLimit: 1_000, zones: 3 },
} as const satisfies Record<string, EnvironmentSettings>;

export type EnvironmentName = keyof typeof ENVIRONMENTS;

/**
 * The families that a deployment uses only if the setting `families` names them. Their processors are slower under
 * steady load, but AWS's free plan permits them and no other family of this file.
 */
export const ONLY_NAMED: readonly string[] = ['c7i-flex', 'm7i-flex'];

/**
 * Instance families. In each family, an instance of a size has as many vCPUs as EXECUTORS says. AWS can choose among
 * many families, so spot interruptions are rare.
 */
export const FAMILIES = {
  arm64: ['c8g', 'c7g', 'c6g', 'm8g', 'm7g', 'm6g'],
  x86_64: ['c7i', 'c7a', 'c6i', 'c6a', 'm7i', 'm7a', 'm6i', 'm6a', 'c7i-flex', 'm7i-flex'],
} as const;

/**
 * The first letter of the names of instance families, by their GiB of memory per core. If no families are named, a
 * fleet has one kind only. With both kinds, a task that needs much memory would fail on some instances and succeed on
 * others.
 */
export const KINDS = { 2: 'c', 4: 'm' } as const;
