export { type Address, Connection } from './connection.ts';
export * from './errors.ts';
export type { MapResults } from './map-results.ts';
export type {
  CallStyle,
  Draft,
  Link,
  Message,
  MessageName,
  Progress,
  Reply,
  Request,
  RouteName,
} from './messages.ts';
export type { Settled } from './outcomes.ts';
export type { Values } from './packing.ts';
export { type MapOptions, Pool, type PoolOptions, type SubmitOptions, type TaskOptions } from './pool.ts';
export { Range, range } from './range.ts';
export type { Output } from './session.ts';
