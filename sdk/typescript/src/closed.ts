import { CloudparError } from './errors.ts';

/** The error of calls that run while their pool is closed. */
export function closedMeanwhile(): CloudparError {
  return new CloudparError('the pool was closed while this call was running');
}

/** The error of calls on a pool that was closed before. */
export function alreadyClosed(): CloudparError {
  return new CloudparError('the pool is closed and takes no more calls: open another one by Pool.open()');
}
