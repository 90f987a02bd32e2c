// Computes when to request news again, like cloudpar/_client/pacing.py.
//
// An embedded master answers as soon as there is news, and a package of many short tasks always has news. Each answer
// costs both sides about a millisecond, so the client pauses before it asks again, while news gathers. The pause is a
// share of the time that the package has run, and becomes shorter towards the package's end, so that the last result is
// not late.

import type { Progress } from './messages.ts';

const LONGEST_S = 0.25;
const SHARE_OF_ELAPSED = 0.05;
const SHARE_OF_REST = 0.3;
const SHORTEST_S = 0.001;

/** A package with its progress, and how long it has run. */
export interface Run {
  readonly progress: Progress;
  readonly elapsedS: number;
}

/** Returns how long to let news gather before the next request. */
export function gatherS(runs: readonly Run[]): number {
  return runs.length === 0 ? 0 : Math.min(...runs.map(gatherOneS));
}

function gatherOneS({ progress, elapsedS }: Run): number {
  const restS = remainingS(progress);
  if (restS === undefined) {
    return 0;
  }
  const pauseS = Math.min(LONGEST_S, elapsedS * SHARE_OF_ELAPSED, restS * SHARE_OF_REST);
  return pauseS >= SHORTEST_S ? pauseS : 0;
}

/** Estimates how long the rest of a package takes; undefined if the duration of its tasks is not known. */
function remainingS({ tasks, done, mean_us, executors }: Progress): number | undefined {
  return done && mean_us && executors ? ((tasks - done) * mean_us) / 1e6 / executors : undefined;
}
