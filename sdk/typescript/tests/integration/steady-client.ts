// A client for tests of the whole system: it maps again and again, and prints a line after each map, until its input
// ends. CLOUDPAR_ENDPOINT and CLOUDPAR_TOKEN name the master.

import { setTimeout } from 'node:timers/promises';
import { Pool } from '../../src/index.ts';
import { all } from '../unit/fake-master.ts';

/** Too large to be sent inline, so that each map also follows links. */
const LARGE = 'x'.repeat(300_000);

/** Leaves the cores to the other processes of the test. */
const PAUSE_MS = 100;

process.stdin.on('end', () => process.exit(0)).resume();
const pool = await Pool.open();
for (;;) {
  const sizes = await all(pool.map('builtins:len', [LARGE, LARGE]));
  console.log(sizes.join(' '));
  await setTimeout(PAUSE_MS);
}
