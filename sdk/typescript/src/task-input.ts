import { inspect } from 'node:util';
import type { CallStyle } from './messages.ts';
import { Range } from './range.ts';

/** The longest description of a task's arguments, in characters: INPUT_CHARS of cloudpar_protocol.limits. */
const CHARS = 200;

/** How many parts of an array or an object are shown. */
const ITEMS = 4;
const TEXT_CHARS = 40;
const DEPTH = 3;

/** The arguments of a map's tasks, if the program still has them. They are read only after a task has failed. */
export interface Inputs {
  readonly values: readonly unknown[] | Range;
  readonly call: CallStyle;
}

/** Returns the values of a map if they can be read later. */
export function inputsOf(values: unknown, call: CallStyle): Inputs | undefined {
  return Array.isArray(values) || values instanceof Range ? { values, call } : undefined;
}

/** Describes the arguments of a task as workers do: "value 3", "arguments (5, b=0)". */
export function describeInput({ values, call }: Inputs, index: number): string | undefined {
  const value = values instanceof Range ? values.at(index) : values[index];
  if (index >= values.length) {
    return undefined; // the program has shortened the array since
  }
  try {
    return cut(call === 'value' ? `value ${brief(value, DEPTH)}` : `arguments (${argumentsOf(value, call)})`);
  } catch {
    return undefined; // the value may be a proxy, whose own code may throw
  }
}

function argumentsOf(value: unknown, call: CallStyle): string {
  const [args, kwargs] = (call === 'args' ? [value, {}] : value) as [unknown[], object];
  return listed([...items(args, DEPTH), ...pairs(kwargs, '=', DEPTH)], args.length + Object.keys(kwargs).length);
}

/** Describes a value in a short text. It reads only the first parts of a large value, and calls no method of it. */
function brief(value: unknown, depth: number): string {
  if (typeof value === 'string') {
    return inspect(value.slice(0, TEXT_CHARS)) + (value.length > TEXT_CHARS ? `... (${value.length} long)` : '');
  }
  if (typeof value !== 'object' || value === null || value instanceof Date) {
    return inspect(value, { customInspect: false });
  }
  const { length } = value as { length?: unknown };
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return `<${value.constructor.name} of ${typeof length === 'number' ? length : `${value.byteLength} bytes`}>`;
  }
  if (depth === 0) {
    return Array.isArray(value) ? `<array of ${value.length}>` : '<object>';
  }
  if (Array.isArray(value)) {
    return `[${listed(items(value, depth - 1), value.length)}]`;
  }
  return `{ ${listed(pairs(value, ': ', depth - 1), Object.keys(value).length)} }`;
}

function items(values: readonly unknown[], depth: number): string[] {
  return values.slice(0, ITEMS).map((each) => brief(each, depth));
}

function pairs(object: object, sign: string, depth: number): string[] {
  const shown = Object.keys(object).slice(0, ITEMS);
  return shown.map((name) => {
    const value: unknown = Object.getOwnPropertyDescriptor(object, name)?.value; // calls no getter
    return `${name}${sign}${brief(value, depth)}`;
  });
}

function listed(parts: readonly string[], count: number): string {
  return parts.join(', ') + (count > parts.length ? `, ... (${count} in all)` : '');
}

function cut(text: string): string {
  return text.length > CHARS ? `${text.slice(0, CHARS - 3)}...` : text;
}
