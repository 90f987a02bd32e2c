// The program's own fetch and signals fit, with the types of the DOM or of Node.

import { Pool } from '@cloudpar/sdk';

export async function open(): Promise<Pool> {
  const pool = await Pool.open({ fetch: (url, init) => fetch(url, { ...init, keepalive: true }) });
  pool.map('m:f', [1], { signal: AbortSignal.timeout(1000) });
  return Pool.open({ fetch });
}
