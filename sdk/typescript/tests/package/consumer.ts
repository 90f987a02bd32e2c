// A program that uses the package; each version of TypeScript compiles it with the packed types.

import {
  Connection,
  type MapOptions,
  type Message,
  Pool,
  type PoolEvent,
  type PoolOptions,
  type Progress,
  range,
  type Settled,
  TaskError,
} from '@cloudpar/sdk';

const options: PoolOptions = { endpoint: 'http://127.0.0.1:8642', token: 't', onEvent: (event) => report(event) };

declare const long: bigint; // a literal would need ES2020

function report(event: PoolEvent): string {
  return event.type === 'progress' ? `${event.progress.done} of ${event.progress.tasks}` : event.type;
}

export async function main(signal?: MapOptions['signal']): Promise<number> {
  await using pool = await Pool.open(options);
  let sum = 0;
  for await (const value of pool.map<number>('math:factorial', range(1, 6), { signal, buffersize: 10 })) {
    sum += value;
  }
  const results = pool.mapUnordered<string>('m:f', [new Float64Array(2), new Uint8Array(2), { a: long }]);
  const each: AsyncIterable<Settled<string>> = results.settled();
  for await (const settled of each) {
    if (settled.status === 'rejected' && settled.reason instanceof TaskError) {
      console_(settled.reason.taskIndex, settled.reason.remoteClass, settled.reason.cause);
    }
  }
  const progress: Progress | undefined = results.progress;
  const attached = await pool.attach<number>((await pool.start('m:f', [1])).packageId);
  const numbers: number[] = await attached.results();
  const who: string | null = (await pool.hello()).account_id;
  const { packages } = await new Connection({ endpoint: 'e', token: 't' }).call('list_packages', { limit: 3 });
  const first: Message<'PackageSummary'> | undefined = packages[0];
  const one: Promise<number> = pool.submit<number>('math:sqrt', [4], { kwargs: {} });
  console_(progress?.done, numbers, who, first?.package_id, await one);
  return sum;
}

function console_(...values: unknown[]): void {
  void values;
}

// @ts-expect-error a misspelt option
void (() => Pool.open({ tokn: 't' }));
// @ts-expect-error the constructor is not public
void (() => new Pool({ endpoint: 'e', token: 't' }));
