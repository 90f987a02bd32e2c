import { type Packed, pack } from '../../src/packing.ts';
import { Range } from '../../src/range.ts';
import type { Seals } from '../../src/seals.ts';
import { Source, type Values } from '../../src/source.ts';

/** Returns all values, packed. */
export function packed(values: Values, seals?: Seals): Promise<Packed> {
  return pack(values instanceof Range ? values : new Source(values), seals);
}
