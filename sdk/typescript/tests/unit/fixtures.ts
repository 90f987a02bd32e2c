import { test as base } from 'vitest';
import type { PoolEvent } from '../../src/events.ts';
import type { Pool } from '../../src/index.ts';
import { FakeMaster } from './fake-master.ts';

/** The objects that each test of this `test` has for itself. */
export interface Fixtures {
  readonly master: FakeMaster;
  /** The events of the pool. */
  readonly events: PoolEvent[];
  /** A pool of the master, which is closed at the end. */
  readonly pool: Pool;
}

/** Vitest's `test`, whose function may take parts of a scene. */
export const test = base.extend<Fixtures>({
  master: ({ task: _ }, use) => use(new FakeMaster()),
  events: ({ task: _ }, use) => use([]),
  pool: async ({ master, events }, use) => {
    const pool = master.pool({ onEvent: (event) => events.push(event) });
    await use(pool);
    await pool.close();
  },
});
