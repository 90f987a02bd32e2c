import type { Draft } from './messages.ts';

const DOTTED = '[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*';
const REFERENCE = new RegExp(`^${DOTTED}:${DOTTED}$`);
const LONGEST = 200;

/** The task code that names a function which the workers import: "package.module:function". */
export async function taskCode(reference: string): Promise<Draft<'TaskCode'>> {
  if (!REFERENCE.test(reference) || reference.length > LONGEST) {
    throw new TypeError(
      `${JSON.stringify(reference)} names no function: write 'package.module:function', in at most ${LONGEST} letters, ` +
        'digits, underscores and dots',
    );
  }
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(reference));
  return { hash: Buffer.from(hash).toString('hex'), reference };
}
