import { decode, encode } from '../../src/codec/messages.ts';
import type { Draft, Message, MessageName } from '../../src/messages.ts';

/** The whole message: what is left out takes its default. */
export function whole<K extends MessageName>(name: K, draft: Draft<K>): Message<K> {
  return decode(name, encode(name, draft));
}

/** A progress of which only this is known. */
export function progressOf(known: Partial<Draft<'Progress'>>): Message<'Progress'> {
  return whole('Progress', { tasks: 1, ...known });
}

/** A status of a running package that says nothing new but this. */
export function statusOf(packageId: string, news: Partial<Draft<'PackageStatus'>> = {}): Message<'PackageStatus'> {
  const nothing = { package_id: packageId, state: 'running', cursor: 0, progress: { tasks: 1 } } as const;
  return whole('PackageStatus', { ...nothing, ...news });
}

/** A task's result on the wire. */
export function resultOf(index: number, blob: [string, number, number] | null = null): Draft<'TaskResult'> {
  return [index, 'ok', 1, blob === null ? new Uint8Array([index]) : null, blob, null, null, null, null, null, null];
}
