// A CommonJS module.

import { Pool } from '@cloudpar/sdk';

export const pool: Promise<Pool> = Pool.open();
