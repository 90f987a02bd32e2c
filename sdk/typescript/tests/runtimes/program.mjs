// A program that uses the SDK in every runtime; it prints its results.

import { Pool, range, TaskRaised } from '@cloudpar/sdk';

const pool = await Pool.open();
const found = {};

found.map = [];
for await (const value of pool.map('sdk_tasks:square', range(200))) {
  found.map.push(value);
}
found.submit = await Promise.all([1, 2, 3].map((value) => pool.submit('math:factorial', [value])));

const large = new Uint8Array(400_000).fill(7);
found.payload = [];
for await (const value of pool.map('copy:copy', [large, 'small'])) {
  found.payload.push(typeof value === 'string' ? value : [value.length, value[399_999]]);
}

const error = await pool.submit('sdk_tasks:odd_fails', [1]).catch((reason) => reason);
found.error = [error instanceof TaskRaised, error.name, error.message, error.taskIndex, error.remoteClass];
found.caller = error.stack.includes('program.mjs');

const abort = new AbortController();
async function* endless() {
  for (let value = 0; ; value += 1) {
    yield value;
  }
}
try {
  for await (const value of pool.map('sdk_tasks:square', endless(), { buffersize: 20, signal: abort.signal })) {
    if (value > 1000) {
      abort.abort(new Error('enough'));
    }
  }
} catch (reason) {
  found.aborted = reason.message;
}

const { packageId } = await pool.start('sdk_tasks:square', [2, 3]);
await pool.close();

const other = await Pool.open();
const attached = await other.attach(packageId);
found.attached = await attached.results();
await attached.acknowledge();
await other.close();
console.log(JSON.stringify(found));
