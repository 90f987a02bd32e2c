// Writes src/generated from docs/openapi.json, which is generated from the protocol's messages:
//
//     npm run generate
//
// The compiler uses types.ts. The codec uses shapes.ts for facts that JavaScript's values do not show: whether a number
// is an integer or a float, and in which order the fields of a message are.

import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import ts from 'typescript';
import type { Field, Shape, Struct } from '../src/codec/shapes.ts';

const DOCUMENT = new URL('../../../docs/openapi.json', import.meta.url);
const FOLDER = new URL('../src/generated/', import.meta.url);
const NOTICE = '// Made by `npm run generate` from docs/openapi.json. Do not edit.\n\n';

interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  anyOf?: Schema[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  contentEncoding?: string;
  minimum?: number;
  items?: Schema | false;
  prefixItems?: Schema[];
  minItems?: number;
  additionalProperties?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  default?: unknown;
}

interface Document {
  paths: Record<string, { post: Operation }>;
  components: { schemas: Record<string, Schema> };
}

interface Operation {
  operationId: string;
  requestBody: Content;
  responses: Record<string, Content>;
}

interface Content {
  content: Record<string, { schema: Schema }>;
}

/** Returns the text of each generated file, by its name. */
export async function render(): Promise<Record<string, string>> {
  const document = JSON.parse(await readFile(DOCUMENT, 'utf8')) as Document;
  return { 'types.ts': await types(document), 'shapes.ts': shapes(document) };
}

async function types(document: Document): Promise<string> {
  const schemas = { openapi: '3.1.0', info: { title: '', version: '' }, components: document.components };
  const nodes = await openapiTS(schemas as unknown as OpenAPI3, { defaultNonNullable: false, transform });
  const whole = astToString(nodes);
  const start = whole.indexOf('export interface components');
  return `${NOTICE}${whole.slice(start, whole.indexOf('\n}\n', start) + 3)}`;
}

/** Maps types that MessagePack has and JSON lacks: bytes, and integers of 64 bits for numbers of users. */
function transform(schema: object): ts.TypeNode | undefined {
  const { contentEncoding, type, minimum } = schema as Schema;
  if (contentEncoding === 'base64') {
    return ts.factory.createTypeReferenceNode('Uint8Array');
  }
  if (type === 'integer' && minimum === -(2 ** 63)) {
    const kinds = [ts.SyntaxKind.NumberKeyword, ts.SyntaxKind.BigIntKeyword] as const;
    return ts.factory.createUnionTypeNode(kinds.map((kind) => ts.factory.createKeywordTypeNode(kind)));
  }
  return undefined;
}

function shapes(document: Document): string {
  const structs = Object.fromEntries(
    Object.entries(document.components.schemas).map(([name, schema]) => [name, struct(schema)]),
  );
  const routes = Object.fromEntries(
    Object.values(document.paths).map(({ post }) => [
      post.operationId,
      { request: body(post.requestBody), reply: body(post.responses['200']) },
    ]),
  );
  return [
    `${NOTICE}import type { Struct } from '../codec/shapes.ts';\n`,
    `export const STRUCTS: Readonly<Record<string, Struct>> = ${table(structs)};\n`,
    `export const ROUTES = ${table(routes)} as const;\n`,
  ].join('\n');
}

/** Writes one entry on each line. */
function table(entries: Record<string, unknown>): string {
  const lines = Object.entries(entries).map(([name, entry]) => `  ${name}: ${JSON.stringify(entry)},\n`);
  return `{\n${lines.join('')}}`;
}

function body(content: Content | undefined): string {
  return named(content?.content['application/msgpack']?.schema.$ref);
}

function named(reference: string | undefined): string {
  const name = reference?.split('/').at(-1);
  if (name === undefined) {
    throw new Error('a schema without a name where one is needed');
  }
  return name;
}

function struct(schema: Schema): Struct {
  if (schema.prefixItems !== undefined) {
    const least = schema.minItems ?? 0;
    return { array: true, fields: schema.prefixItems.map((item, index) => field(String(index), item, index < least)) };
  }
  const required = new Set(schema.required);
  const properties = Object.entries(schema.properties ?? {});
  return { array: false, fields: properties.map(([name, property]) => field(name, property, required.has(name))) };
}

function field(name: string, schema: Schema, required: boolean): Field {
  return required ? { name, shape: shape(schema) } : { name, shape: shape(schema), default: schema.default };
}

function shape(schema: Schema): Shape {
  if (schema.$ref !== undefined) {
    return { struct: named(schema.$ref) };
  }
  if (schema.discriminator !== undefined) {
    const { propertyName, mapping } = schema.discriminator;
    const names = Object.entries(mapping).map(([tag, reference]) => [tag, named(reference)]);
    return { tag: propertyName, structs: Object.fromEntries(names) };
  }
  if (schema.anyOf !== undefined) {
    const [some, ...others] = schema.anyOf.filter(({ type }) => type !== 'null');
    if (some === undefined || others.length > 0 || schema.anyOf.length !== 2) {
      throw new Error(`a union that the codec does not know: ${JSON.stringify(schema)}`);
    }
    return { nullable: shape(some) };
  }
  if (schema.enum !== undefined) {
    return 'str';
  }
  return part(schema);
}

function part(schema: Schema): Shape {
  switch (schema.type) {
    case 'integer':
      return 'int';
    case 'number':
      return 'float';
    case 'boolean':
      return 'bool';
    case 'string':
      return schema.contentEncoding === 'base64' ? 'bytes' : 'str';
    case 'array':
      return schema.prefixItems ? { tuple: schema.prefixItems.map(shape) } : { list: shape(schema.items || {}) };
    case 'object':
      return { map: shape(schema.additionalProperties ?? {}) };
    default:
      throw new Error(`a schema that the codec does not know: ${JSON.stringify(schema)}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of Object.entries(await render())) {
    await writeFile(new URL(name, FOLDER), text);
  }
}
