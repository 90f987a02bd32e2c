import { decode, encode } from '../../src/codec/messages.ts';
import type { Draft, Message, MessageName } from '../../src/messages.ts';
import type { TaskResult } from '../../src/package.ts';

/** Returns the whole message, with defaults for missing fields. */
export function whole<K extends MessageName>(name: K, draft: Draft<K>): Message<K> {
  return decode(name, encode(name, draft));
}

/** Returns a progress with only these fields set. */
export function progressOf(known: Partial<Draft<'Progress'>>): Message<'Progress'> {
  return whole('Progress', { tasks: 1, ...known });
}

/** Returns a status of a running package with only these news. */
export function statusOf(packageId: string, news: Partial<Draft<'PackageStatus'>> = {}): Message<'PackageStatus'> {
  const nothing = { package_id: packageId, state: 'running', cursor: 0, progress: { tasks: 1 } } as const;
  return whole('PackageStatus', { ...nothing, ...news });
}

/** A task's result on the wire. */
export function resultOf(index: number, blob: [string, number, number] | null = null): Draft<'TaskResult'> {
  return [index, 'ok', 1, blob === null ? new Uint8Array([index]) : null, blob, null, null, null, null, null, null];
}

/** Returns the result of a task whose function raised. */
export function failureOf(index: number, input: string | null = null): Draft<'TaskResult'> {
  const trace = 'Traceback (most recent call last):\n  File "m.py", line 1\nmy.errors.Bad: no good\n';
  return [index, 'error', 1, null, null, 'Bad: no good', trace, null, null, null, input];
}

/** Returns a task's result in the client's form. */
export function taskResult(known: Partial<TaskResult>): TaskResult {
  const texts = { message: null, traceback: null, stdout: null, stderr: null, input: null };
  return { index: 0, outcome: 'ok', data: null, seal: null, blob: null, page: 0, ...texts, ...known };
}
