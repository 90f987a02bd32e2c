import type { Draft } from './messages.ts';

const DOTTED = '[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*';
const REFERENCE = new RegExp(`^${DOTTED}:${DOTTED}$`);
const LONGEST = 200;

/**
 * Check the name of a function.
 *
 * @throws TypeError when it is none.
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

/** The task code that names a function which the workers import: "package.module:function". */
export async function taskCode(reference: string): Promise<Draft<'TaskCode'>> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(reference));
  return { hash: Buffer.from(hash).toString('hex'), reference };
}
