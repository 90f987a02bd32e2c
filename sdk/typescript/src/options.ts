// The options of calls, and their checks. TypeScript finds a misspelt option, but JavaScript would ignore it silently.

import type { CallStyle } from './messages.ts';

/**
 * The part of an AbortSignal that this SDK uses, so that its types need neither the types of the DOM nor those of Node.
 */
export interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  /** Throws the signal's reason if it is aborted. */
  throwIfAborted(): void;
}

/** The options of all calls that start tasks. */
export interface TaskOptions {
  /**
   * The longest time that one of these tasks may run, in seconds. A value above the operator's limit counts as this
   * limit.
   */
  readonly taskTimeoutS?: number | undefined;
  /** How often to retry a task that raises, immediately; the time of all attempts is charged. 0 by default. */
  readonly retries?: number | undefined;
  /** Retry only after these exceptions and their subclasses: "ValueError", "package.module.Class". */
  readonly retryOn?: readonly string[] | undefined;
  /**
   * An AbortSignal that cancels the tasks. Their reader gets the signal's reason. With `start` the signal works only
   * until `start` has resolved; after that, use `attachment.cancel()`.
   */
  readonly signal?: Signal | undefined;
}

/** The options of all calls that start a package. */
export type PackageOptions = Omit<TaskOptions, 'signal'>;

/** The options of `start`. */
export interface StartOptions extends TaskOptions {
  /** How many tasks a worker takes at a time; by default the master chooses from measured durations. */
  readonly chunksize?: number | undefined;
  /** How the function is called with a value v: "value" f(v), "args" f(*v), "args_kwargs" f(*v[0], **v[1]). */
  readonly call?: CallStyle | undefined;
}

/** The options of `map` and `mapUnordered`. */
export interface MapOptions extends StartOptions {
  /**
   * The maximum number of tasks that were started and whose results are not read yet. With this option the values are
   * consumed while results are read, so they may be endless, and the tasks start in several packages. By default all
   * values are collected first.
   */
  readonly buffersize?: number | undefined;
}

/** The options of `submit`. */
export interface SubmitOptions extends TaskOptions {
  /** The keyword arguments. */
  readonly kwargs?: Readonly<Record<string, unknown>> | undefined;
}

interface Rule {
  readonly good: (value: never) => boolean;
  readonly must: string;
}

/** The longest time that an option accepts, in seconds; the master accepts no longer time. */
const MOST_SECONDS = 1e9;
const MOST_RETRIES = 100;
const MOST_NAMES = 20;

const isCount =
  (least: number, most = Number.MAX_SAFE_INTEGER) =>
  (value: number) =>
    Number.isSafeInteger(value) && value >= least && value <= most;
const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

const RULES: Readonly<Record<string, Rule>> = {
  endpoint: { good: isFilled, must: 'a URL' },
  token: { good: isFilled, must: 'a string that is not empty' },
  stack: { good: isFilled, must: "a stack's name" },
  tokenSecret: { good: isFilled, must: "a secret's name" },
  patienceS: { good: (value: number) => isNumber(value) && value >= 0, must: 'a number of seconds, at least 0' },
  onOutput: { good: isFunction, must: 'a function' },
  onEvent: { good: isFunction, must: 'a function' },
  fetch: { good: isFunction, must: 'a function that is called as the global fetch is' },
  taskTimeoutS: {
    good: (value: number) => isNumber(value) && value > 0 && value <= MOST_SECONDS,
    must: `a positive number of seconds, at most ${MOST_SECONDS}`,
  },
  retries: { good: isCount(0, MOST_RETRIES), must: `an integer from 0 to ${MOST_RETRIES}` },
  retryOn: { good: isNames, must: `an array of at most ${MOST_NAMES} names, such as ["OSError"]` },
  signal: { good: isSignal, must: 'an AbortSignal' },
  chunksize: { good: isCount(1), must: 'an integer, at least 1' },
  call: { good: isCallStyle, must: '"value", "args" or "args_kwargs"' },
  buffersize: { good: isCount(1), must: 'an integer, at least 1' },
  kwargs: { good: isObject, must: 'an object' },
};

const TASK = ['taskTimeoutS', 'retries', 'retryOn', 'signal'];

/** The options of each call, by their names. */
const CALLS = {
  'Pool.open': ['endpoint', 'token', 'stack', 'tokenSecret', 'patienceS', 'onOutput', 'onEvent', 'fetch'],
  start: [...TASK, 'chunksize', 'call'],
  map: [...TASK, 'chunksize', 'call', 'buffersize'],
  mapUnordered: [...TASK, 'chunksize', 'call', 'buffersize'],
  submit: [...TASK, 'kwargs'],
  Connection: ['patienceS', 'fetch'],
} as const satisfies Record<string, readonly string[]>;

/**
 * Checks the options of a call. An option whose value is undefined counts as not given.
 *
 * @throws TypeError when an option is misspelt or its value is not valid. The text names a similar option, all options
 *   of the call, or the valid values.
 */
export function checkOptions(call: keyof typeof CALLS, options: object): void {
  if (!isObject(options)) {
    throw new TypeError(`the options of ${call} must be an object`);
  }
  const known: readonly string[] = CALLS[call];
  for (const [name, value] of Object.entries(options)) {
    if (!known.includes(name)) {
      const near = known.find((each) => isNear(each, name));
      const hint = near ? `did you mean ${near}?` : `it has ${known.join(', ')}`;
      throw new TypeError(`${call} has no option ${name}: ${hint}`);
    }
    const rule = RULES[name];
    if (value !== undefined && rule !== undefined && !rule.good(value as never)) {
      const given = name === 'token' ? `of type ${typeof value}` : shown(value); // an error must not show a token
      throw new TypeError(`the option ${name} of ${call} must be ${rule.must}, and is ${given}`);
    }
  }
}

function shown(value: unknown): string {
  const asIs = typeof value === 'number' || typeof value === 'bigint'; // JSON has no NaN, and refuses 1n
  const text =
    typeof value === 'function' ? 'a function' : asIs ? String(value) : (JSON.stringify(value) ?? `${value}`);
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number';
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.length <= MOST_NAMES && value.every(isFilled);
}

function isSignal(value: unknown): boolean {
  return isObject(value) && 'aborted' in (value as object) && 'addEventListener' in (value as object);
}

function isCallStyle(value: unknown): boolean {
  return value === 'value' || value === 'args' || value === 'args_kwargs';
}

/** Whether two names differ only in case, underscores, a unit or a few letters. */
function isNear(one: string, other: string): boolean {
  const [short, long] = [normalized(one), normalized(other)].sort((left, right) => left.length - right.length);
  return short !== undefined && long !== undefined && (long.startsWith(short) || distance(short, long) <= 2);
}

function normalized(name: string): string {
  return name.toLowerCase().replaceAll('_', '');
}

/** Returns how many letters must be inserted, removed or changed to get one name from the other. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [place, letter] of [...one].entries()) {
    const next = [place + 1];
    for (let index = 0; index < other.length; index += 1) {
      const changed = (row[index] ?? 0) + (letter === other[index] ? 0 : 1);
      next.push(Math.min(changed, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
