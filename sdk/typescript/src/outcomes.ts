import type { CallSite } from './call-site.ts';
import { readValue } from './codec/values.ts';
import { CloudparError, OUTCOME_ERRORS, RemoteTraceback, TaskError } from './errors.ts';
import type { TaskResult } from './package.ts';
import type { Seals } from './seals.ts';
import { describeInput, type Inputs } from './task-input.ts';

/** The value or the error of one task: the shape of Promise.allSettled, with the task's number. */
export type Settled<T> =
  | { readonly index: number; readonly status: 'fulfilled'; readonly value: T }
  | { readonly index: number; readonly status: 'rejected'; readonly reason: CloudparError };

/** What a call of the program knows about the tasks that it started. */
export interface CallInfo {
  /** Where the program started the tasks. */
  readonly site?: CallSite | undefined;
  /** The number of tasks; undefined if it is not known yet, or meaningless, as for `submit`. */
  readonly tasks?: number | undefined;
  /** The tasks' arguments that the program still has, by the tasks' numbers in the call. */
  readonly inputs?: Inputs | undefined;
}

/** What an error of a task needs besides the task's result. */
export interface TaskContext extends CallInfo {
  readonly packageId: string;
  /** The number of the package's first task in the whole map. */
  readonly base: number;
  /** The seals of a sealed package: a result that does not match its seal is not read. */
  readonly seals: Seals | undefined;
}

/** Returns the value or the error of a task's result. The type of the value is not checked. */
export function settle<T>(arrived: TaskResult, context: TaskContext): Settled<T> {
  const result = context.seals?.verified(arrived) ?? arrived;
  const index = context.base + result.index;
  if (result.broken === undefined && result.outcome === 'ok') {
    try {
      return { index, status: 'fulfilled', value: (result.data === null ? null : readValue(result.data)) as T };
    } catch (error) {
      if (error instanceof CloudparError) {
        return { index, status: 'rejected', reason: located(error, result, context) };
      }
      throw error;
    }
  }
  return { index, status: 'rejected', reason: located(result.broken ?? errorOf(result), result, context) };
}

function errorOf({ index, outcome, message, traceback }: TaskResult): CloudparError {
  const Kind = OUTCOME_ERRORS[outcome] ?? TaskError;
  const options = traceback === null ? {} : { cause: new RemoteTraceback(traceback) };
  const error = new Kind(message ?? `task ${index} ended without a value: ${outcome}`, options);
  if (error instanceof TaskError) {
    error.code = outcome;
    error.remoteClass = outcome === 'error' ? remoteClass(message, traceback) : undefined;
  }
  return error;
}

/** Returns "package.module.Class" from the last line of the traceback that has it, or "Class" from the message. */
function remoteClass(message: string | null, traceback: string | null): string | undefined {
  const name = /^[\w.<>]+(?=:|$)/.exec(message ?? '')?.[0];
  const lines = traceback?.split('\n') ?? [];
  const qualified = lines.map((line) => /^([\w.<>]+)(?=:|$)/.exec(line)?.[1]);
  return qualified.findLast((each) => name !== undefined && (each === name || each?.endsWith(`.${name}`))) ?? name;
}

/**
 * Records on an error its task and the task's arguments, in fields and as a line of the stack. For the failure of a
 * package the line is left out, because the failure would look like a fault of the task.
 */
export function located(
  error: CloudparError,
  { index, input }: Pick<TaskResult, 'index' | 'input'>,
  { packageId, base, site, tasks, inputs }: TaskContext,
  ofPackage = false,
): CloudparError {
  const number = base + index;
  error.taskIndex = number;
  error.packageId = packageId;
  const given = input ?? (inputs && describeInput(inputs, number));
  if (given !== undefined) {
    error.taskInput = given;
  }
  const task = tasks === undefined ? `task ${inEnglish(number)}` : `task ${inEnglish(number)} of ${inEnglish(tasks)}`;
  const note = ofPackage ? '' : `\n${task}${given === undefined ? '' : `, ${given}`}`;
  error.stack = `${error.name}: ${error.message}${note}${site?.frames ?? ''}`;
  return error;
}

/** Copies an error, so that each task of a failed package has an error of its own. */
export function copied<E extends CloudparError>(error: E): E {
  const Kind = error.constructor as new (message: string, options?: ErrorOptions) => E;
  return Object.assign(new Kind(error.message), error, error.cause === undefined ? {} : { cause: error.cause });
}

const NUMBERS = new Intl.NumberFormat('en');

function inEnglish(number: number): string {
  return NUMBERS.format(number);
}
