import { type CloudparError, PackageFailed } from './errors.ts';
import type { Fetch, Package, TaskResult } from './package.ts';
import type { ResultBuffer } from './result-buffer.ts';

/** A package's part of a map: its tasks have the numbers [base, base + n). Receives its results for the buffer. */
export class Part {
  readonly base: number;
  package: Package | undefined;
  unread = 0;
  failure: CloudparError | undefined;
  ended = false;
  readonly #buffer: ResultBuffer;
  /** Tasks whose results have come, or were given up. */
  #arrived = new Uint8Array();

  constructor(buffer: ResultBuffer, base: number) {
    this.#buffer = buffer;
    this.base = base;
  }

  /** The master has the package; this is called before its first results come. */
  started(started: Package): void {
    this.package = started;
    this.unread = started.tasks;
    this.#arrived = new Uint8Array(started.tasks);
    this.#buffer.changed();
  }

  receive(results: readonly TaskResult[]): void {
    for (const { index } of results) {
      this.#arrived[index] = 1;
    }
    this.#buffer.put(this, results);
  }

  end(failure: CloudparError | undefined): void {
    this.ended = true;
    this.failure = failure;
    this.#buffer.changed();
  }

  /** The first task that will never have a result, because its package failed; undefined if there is none, or none yet. */
  lost(): number | undefined {
    const index = this.ended && this.failure instanceof PackageFailed ? this.#arrived.indexOf(0) : -1;
    return index < 0 ? undefined : index;
  }

  /** The reader has been told that a task is lost. */
  giveUp(index: number): void {
    this.#arrived[index] = 1;
  }

  /** Leave results at the master: `rewind` has them sent again. */
  leave(results: readonly TaskResult[]): void {
    for (const { index } of results) {
      this.#arrived[index] = 0;
    }
    this.ended = false;
    this.package?.leave(results);
  }

  /** Whether a payload of so many bytes may be downloaded now; if so, its bytes count from now on. */
  admits(span: readonly Fetch[]): boolean {
    return this.#buffer.admits(
      span.map(({ result }) => this.base + result.index),
      span.reduce((sum, { size }) => sum + size, 0),
    );
  }

  /** The download of these has ended, well or not. */
  downloaded(span: readonly Fetch[]): void {
    this.#buffer.downloaded(span.reduce((sum, { size }) => sum + size, 0));
  }
}
