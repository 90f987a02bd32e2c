import type { CallStyle, Draft } from './messages.ts';
import type { PackageOptions } from './options.ts';
import type { Packed } from './packing.ts';
import type { Seals } from './seals.ts';

/** A package to start: code, data, and how the code is called with the data. */
export interface Order extends PackageOptions {
  readonly code: Draft<'TaskCode'>;
  readonly packed: Packed;
  readonly call: CallStyle;
  readonly chunksize?: number | undefined;
  readonly packageKey: PackageKey;
}

/** The identity of a new package: its idempotency key and, at a master that knows seals, its seals. */
export interface PackageKey {
  readonly idempotencyKey: string;
  readonly seals: Seals | undefined;
}

/** Returns the request that starts a package. The package's data must already be uploaded, or be inline. */
export function startMessage(order: Order, data: Draft<'StartTasks'>['data'], session: string): Draft<'StartTasks'> {
  const { code, packed, packageKey } = order;
  return {
    idempotency_key: packageKey.idempotencyKey,
    session,
    name: code.reference ?? '',
    n: packed.n,
    code,
    data,
    call: order.call,
    codec: 'msgpack',
    python: '',
    chunksize: order.chunksize ?? null,
    task_timeout_s: order.taskTimeoutS ?? null,
    retries: order.retries ?? 0,
    retry_on: [...(order.retryOn ?? [])],
    seal: packageKey.seals === undefined ? null : sealOf(packageKey.seals, order),
  };
}

function sealOf(seals: Seals, { code, packed: { n, data }, call }: Order): Uint8Array {
  const range = data.type === 'range' ? ([data.start, data.step] as const) : undefined;
  const { hash, reference = null } = code;
  return seals.code({ hash, reference }, { call, codec: 'msgpack', python: '', tasks: n, range });
}
