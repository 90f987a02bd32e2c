import { createHash } from 'node:crypto';
import type { Draft } from './messages.ts';

const DOTTED = '[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*';
const REFERENCE = new RegExp(`^${DOTTED}:${DOTTED}$`);
const LONGEST = 200;

/**
 * Checks the name of a function.
 *
 * @throws TypeError when it is not valid.
 */
export function checkReference(reference: unknown): asserts reference is string {
  if (typeof reference !== 'string' || !REFERENCE.test(reference) || reference.length > LONGEST) {
    const given =
      typeof reference === 'function' ? 'a JavaScript function' : (JSON.stringify(reference) ?? 'undefined');
    throw new TypeError(
      `${given} names no function: write 'package.module:function', in at most ${LONGEST} letters, digits, ` +
        'underscores and dots; tasks are Python functions that the workers import',
    );
  }
}

/** Makes the task code for a function that the workers import: "package.module:function". */
export function taskCode(reference: string): Draft<'TaskCode'> {
  return { hash: createHash('sha256').update(reference).digest('hex'), reference };
}
