import type { CloudparError } from './errors.ts';
import type { TaskContext } from './outcomes.ts';
import type { LargeResult, Package, TaskResult } from './package.ts';
import type { ResultBuffer } from './result-buffer.ts';

/**
 * The part of a map that one package runs: the tasks with the numbers [base, base + n). It receives the package's
 * results.
 */
export class MapPart {
  readonly base: number;
  package: Package | undefined;
  /** What is needed to make the errors of its tasks and to verify their seals. */
  context: TaskContext | undefined;
  unread = 0;
  failure: CloudparError | undefined;
  ended = false;
  readonly #buffer: ResultBuffer;

  constructor(buffer: ResultBuffer, base: number) {
    this.#buffer = buffer;
    this.base = base;
  }

  /** Records that the master has the package. This is called before its first results come. */
  started(started: Package): void {
    this.package = started;
    this.unread = started.tasks;
    this.#buffer.changed();
  }

  receive(results: readonly TaskResult[]): void {
    this.#buffer.put(this, results);
  }

  end(failure: CloudparError | undefined): void {
    this.ended = true;
    this.failure = failure;
    this.#buffer.changed();
  }

  fail(failure: CloudparError): void {
    this.failure = failure;
    this.#buffer.changed();
  }

  /** Drops results, which stay at the master until `rewind` requests them again. */
  leave(results: readonly TaskResult[]): void {
    this.ended = false;
    this.package?.leave(results);
  }

  /**
   * Returns whether these payloads may be downloaded now. If so, their bytes count towards the buffer's limit from now
   * on.
   */
  admits(span: readonly LargeResult[]): boolean {
    return this.#buffer.admits(
      span.map(({ result }) => this.base + result.index),
      span.reduce((sum, { size }) => sum + size, 0),
    );
  }

  /** Records that the download of these payloads has ended, successfully or not. */
  downloaded(span: readonly LargeResult[]): void {
    this.#buffer.downloaded(span.reduce((sum, { size }) => sum + size, 0));
  }
}
