import type { Progress } from './messages.ts';

/** Adds up the progress of two packages of one map. */
export function sumOf(one: Progress, other: Progress): Progress {
  const names = ['tasks', 'done', 'errors', 'charged_us', 'execute_us', 'retrieve_us', 'publish_us'] as const;
  const sums = Object.fromEntries(names.map((name) => [name, one[name] + other[name]]));
  const means = one.mean_us * one.done + other.mean_us * other.done;
  const mean_us = Math.round(means / Math.max(1, one.done + other.done));
  return { ...one, ...sums, mean_us, executors: Math.max(one.executors, other.executors) };
}
