// Writes dist: the package in one file as an ES module and one for `require`, with its types in one file:
//
//     npm run build
//
// All types are in one file, which also names the libraries of the language that it needs. So programs with TypeScript
// 5.4 and later can use the types with any `lib`, with or without the types of Node.

import { rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';

const PACKAGE = new URL('../', import.meta.url);
const ENTRY = fileURLToPath(new URL('src/index.ts', PACKAGE));
const DIST = fileURLToPath(new URL('dist/', PACKAGE));
/**
 * Libraries that the types need and that an older `lib` lacks, such as the `lib` of `tsc --init` before 5.9 (ES2016).
 */
const LIBRARIES = [
  'es2018.asyncgenerator',
  'es2018.asynciterable',
  'es2021.promise',
  'es2022.error',
  'esnext.disposable',
];

async function code(format: 'esm' | 'cjs', file: string): Promise<void> {
  await build({
    entryPoints: [ENTRY],
    outfile: DIST + file,
    bundle: true,
    format,
    platform: 'node',
    target: 'node20',
    packages: 'external',
    sourcemap: true,
    keepNames: true, // so that an error's class keeps its name in a minified program
  });
}

async function types(): Promise<string> {
  const tsconfig = fileURLToPath(new URL('tsconfig.build.json', PACKAGE));
  const bundle = await rollup({ input: ENTRY, plugins: [dts({ tsconfig })] });
  const { output } = await bundle.generate({ format: 'es' });
  const references = LIBRARIES.map((library) => `/// <reference lib="${library}" />\n`);
  return references.join('') + output[0].code;
}

await rm(DIST, { recursive: true, force: true });
const [text] = await Promise.all([types(), code('esm', 'index.js'), code('cjs', 'index.cjs')]);
await writeFile(`${DIST}index.d.ts`, text);
await writeFile(`${DIST}index.d.cts`, text);
