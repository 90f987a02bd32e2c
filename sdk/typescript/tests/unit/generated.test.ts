import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { render } from '../../scripts/generate.ts';

test('src/generated is made from the protocol of today (otherwise: npm run generate)', async () => {
  for (const [name, text] of Object.entries(await render())) {
    expect(await readFile(new URL(`../../src/generated/${name}`, import.meta.url), 'utf8'), name).toBe(text);
  }
});
