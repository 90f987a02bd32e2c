export type { Attachment } from './attachment.ts';
export type { Whereabouts } from './configuration.ts';
export { type Address, Connection, type ConnectionOptions } from './connection.ts';
export * from './errors.ts';
export { EVENT_CHANNEL, type PoolEvent } from './events.ts';
export type { Fetch, FetchAnswer, FetchInit } from './http.ts';
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
export type { MapOptions, Signal, StartOptions, SubmitOptions, TaskOptions } from './options.ts';
export type { Settled } from './outcomes.ts';
export { Pool, type PoolOptions } from './pool.ts';
export { Range, range } from './range.ts';
export type { Output } from './result-dispatcher.ts';
export type { Values } from './source.ts';
