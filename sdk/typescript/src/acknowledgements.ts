import type { Connection } from './connection.ts';
import { BULK_ITEMS } from './limits.ts';

/** How long an acknowledgement waits for others, in milliseconds, so that one request acknowledges several packages. */
const GATHER_MS = 1000;

/** Sends acknowledgements. The master then cancels the packages' running tasks and frees their storage. */
export class Acknowledgements {
  readonly #connection: Connection;
  readonly #sending = new Set<Promise<void>>();
  #waiting: string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * @param now Whether to send the acknowledgement at once, because a running package costs compute time until then.
   */
  add(packageId: string, now: boolean): void {
    this.#waiting.push(packageId);
    if (now || this.#waiting.length >= BULK_ITEMS) {
      void this.send();
    } else {
      this.#timer ??= setTimeout(() => void this.send(), GATHER_MS);
      this.#timer.unref();
    }
  }

  /** Sends the waiting acknowledgements. Resolves when these and all earlier ones were answered or have failed. */
  async send(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const sent = this.#sendAll().catch(() => undefined); // the master deletes packages some days later in any case
    this.#sending.add(sent);
    await Promise.all(this.#sending);
    this.#sending.delete(sent);
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#connection.call('acknowledge', { package_ids: this.#waiting.splice(0, BULK_ITEMS) });
    }
  }
}
