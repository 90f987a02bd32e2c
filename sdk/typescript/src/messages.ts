import type { ROUTES } from './generated/shapes.ts';
import type { components } from './generated/types.ts';

type Schemas = components['schemas'];

/** The name of a message, or of a part of one, as in docs/openapi.json. */
export type MessageName = keyof Schemas;

/** A message to be sent: fields with a default may be left out. */
export type Draft<K extends MessageName> = Schemas[K];

/** A received message: all fields are present. */
export type Message<K extends MessageName> = Whole<Schemas[K]>;

type Whole<T> = T extends Uint8Array | string | number | bigint | boolean | null | undefined
  ? T
  : { [K in keyof T]-?: Whole<Exclude<T[K], undefined>> };

/** The name of a call: POST /v1/<name>. */
export type RouteName = keyof typeof ROUTES;

/** The request of a call. */
export type Request<R extends RouteName> = Draft<(typeof ROUTES)[R]['request']>;
/** The reply to a call. */
export type Reply<R extends RouteName> = Message<(typeof ROUTES)[R]['reply']>;

/** How the function f is called with a task's data d: f(d), f(*d), or f(*d[0], **d[1]). */
export type CallStyle = NonNullable<Draft<'StartTasks'>['call']>;

/** A presigned request for one object and one method. */
export type Link = Message<'Link'>;

/** One upload in parts: a PUT request for each part, then a POST request that combines the parts into one payload. */
export type Parts = Message<'Parts'>;

/** The progress of a package. */
export type Progress = Message<'Progress'>;
