import { readValue } from './codec/values.ts';
import { CloudparError, OUTCOME_ERRORS, RemoteTraceback, TaskError } from './errors.ts';
import type { TaskResult } from './package.ts';

/** What one task came to: the shape of Promise.allSettled, with the task's number. */
export type Settled<T> =
  | { readonly index: number; readonly status: 'fulfilled'; readonly value: T }
  | { readonly index: number; readonly status: 'rejected'; readonly reason: CloudparError };

/** From the wire to a value or an error. The value is taken to be a T: nobody checks what a function returns. */
export function settle<T>(result: TaskResult): Settled<T> {
  const { index } = result;
  if (result.broken !== undefined) {
    return { index, status: 'rejected', reason: result.broken };
  }
  try {
    if (result.outcome === 'ok') {
      return { index, status: 'fulfilled', value: (result.data === null ? null : readValue(result.data)) as T };
    }
  } catch (error) {
    if (error instanceof CloudparError) {
      return { index, status: 'rejected', reason: error };
    }
    throw error;
  }
  const Kind = OUTCOME_ERRORS[result.outcome] ?? TaskError;
  const message = result.message ?? `task ${index} ended without a value: ${result.outcome}`;
  const options = result.traceback === null ? {} : { cause: new RemoteTraceback(result.traceback) };
  return { index, status: 'rejected', reason: new Kind(message, options) };
}
