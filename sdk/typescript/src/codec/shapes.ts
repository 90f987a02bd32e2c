/** The type of a field. A name in `struct` or `structs` is one of the generated STRUCTS. */
export type Shape =
  | 'int'
  | 'float'
  | 'bool'
  | 'str'
  | 'bytes'
  | { readonly struct: string }
  | { readonly tag: string; readonly structs: Readonly<Record<string, string>> }
  | { readonly nullable: Shape }
  | { readonly list: Shape }
  | { readonly map: Shape }
  | { readonly tuple: readonly Shape[] };

/** A field. A field without a default is required. */
export interface Field {
  readonly name: string;
  readonly shape: Shape;
  readonly default?: unknown;
}

/** A message, or a part of a message. With `array` it is encoded as the array of its fields, without names. */
export interface Struct {
  readonly array: boolean;
  readonly fields: readonly Field[];
}
