import { CloudparError } from './errors.ts';

/** Returns the error of calls that were running when their pool was closed. */
export function closedMeanwhile(): CloudparError {
  return new CloudparError('the pool was closed while this call was running');
}

/** Returns the error of calls on a pool that was closed before the call. */
export function alreadyClosed(): CloudparError {
  return new CloudparError('the pool is closed and takes no more calls: open another one by Pool.open()');
}
