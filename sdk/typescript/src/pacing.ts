// When to ask for news again: pure arithmetic, like cloudpar/pacing.py.
//
// An embedded master answers the moment there is news, and with a package of many short tasks there always is. Each
// answer costs both sides about a millisecond, so some news may gather: the less the longer a package has run already
// (a share of that time at most), and less and less towards its end, so that the last result is not late.

import type { Progress } from './messages.ts';

const LONGEST_S = 0.25;
const SHARE_OF_ELAPSED = 0.05;
const SHARE_OF_REST = 0.3;
const SHORTEST_S = 0.001;

/** A package that is being awaited: how far it is, and for how long it has run. */
export interface Run {
  readonly progress: Progress;
  readonly elapsedS: number;
}

/** How long to let news gather before the next question. */
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

/** How long the rest of a package takes, going by what is known; undefined if nothing is. */
function remainingS({ tasks, done, mean_us, executors }: Progress): number | undefined {
  return done && mean_us && executors ? ((tasks - done) * mean_us) / 1e6 / executors : undefined;
}
