import type { CallSite } from './call-site.ts';
import { readValue } from './codec/values.ts';
import { CloudparError, OUTCOME_ERRORS, RemoteTraceback, TaskError } from './errors.ts';
import type { TaskResult } from './package.ts';
import type { Seals } from './seals.ts';

/** What one task came to: the shape of Promise.allSettled, with the task's number. */
export type Settled<T> =
  | { readonly index: number; readonly status: 'fulfilled'; readonly value: T }
  | { readonly index: number; readonly status: 'rejected'; readonly reason: CloudparError };

/** What is told of a task beside its result. */
export interface TaskContext {
  readonly packageId: string;
  /** The number of the package's first task in the whole map. */
  readonly base: number;
  /** Of a sealed package: a result that is not what its seal says is not read. */
  readonly seals: Seals | undefined;
  /** Where the program started the task. */
  readonly site?: CallSite | undefined;
}

/** From the wire to a value or an error. The value is taken to be a T: nothing checks what a function returns. */
export function settle<T>(arrived: TaskResult, context: TaskContext): Settled<T> {
  const result = context.seals?.verified(arrived) ?? arrived;
  const index = context.base + result.index;
  if (result.broken === undefined && result.outcome === 'ok') {
    try {
      return { index, status: 'fulfilled', value: (result.data === null ? null : readValue(result.data)) as T };
    } catch (error) {
      if (error instanceof CloudparError) {
        return { index, status: 'rejected', reason: located(error, index, context) };
      }
      throw error;
    }
  }
  return { index, status: 'rejected', reason: located(result.broken ?? errorOf(result), index, context) };
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

/** "package.module.Class", from the last line of the traceback; at least "Class", from the message "Class: text". */
function remoteClass(message: string | null, traceback: string | null): string | undefined {
  const name = /^[\w.<>]+(?=:|$)/.exec(message ?? '')?.[0];
  const lines = traceback?.split('\n') ?? [];
  const qualified = lines.map((line) => /^([\w.<>]+)(?=:|$)/.exec(line)?.[1]);
  return qualified.findLast((each) => name !== undefined && (each === name || each?.endsWith(`.${name}`))) ?? name;
}

function located(error: CloudparError, index: number, { packageId, site }: TaskContext): CloudparError {
  error.taskIndex = index;
  error.packageId = packageId;
  site?.mark(error);
  return error;
}
