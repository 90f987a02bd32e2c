import type { CallSite } from './call-site.ts';
import { CloudparError, Gone, NotFound, SerializationError } from './errors.ts';
import { Breaks } from './event-loop.ts';
import type { Message, Progress } from './messages.ts';
import type { Settled } from './outcomes.ts';
import { ResultBuffer } from './result-buffer.ts';
import type { Session } from './session.ts';

/** The number of characters of a whole package id. */
const ID_LENGTH = 32;

/** How many packages the master lists at once. */
const NEWEST = 1000;

/**
 * A package that was started earlier, here or elsewhere, in JavaScript or in Python.
 *
 * The package does not belong to the pool: closing the pool neither cancels nor deletes it. Its results stay at the
 * master until a client acknowledges the package or the master's retention time is over. Until then, any process can
 * read the results again.
 */
export class Attachment<T> implements AsyncIterable<T> {
  /** The package's id, for `pool.attach`. */
  readonly packageId: string;
  readonly #session: Session;
  readonly #site: CallSite | undefined;
  #progress: Progress;

  /** @internal */
  constructor(session: Session, packageId: string, progress: Progress, site?: CallSite) {
    this.#site = site;
    this.#session = session;
    this.packageId = packageId;
    this.#progress = progress;
  }

  /** The package's progress as last known: from `attach` or `start`, from `refresh`, or from reading results. */
  get progress(): Progress {
    return this.#progress;
  }

  /** Requests the progress from the master, and returns it. */
  async refresh(): Promise<Progress> {
    this.#progress = (await statusOf(this.#session, this.packageId)).progress;
    return this.#progress;
  }

  /**
   * Yields the values in the order of the tasks. The first error ends a loop over the values. Leaving a loop cancels
   * nothing.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const each of this.settled()) {
      if (each.status === 'rejected') {
        throw each.reason;
      }
      yield each.value;
    }
  }

  /** Returns all values in the order of the tasks; rejects with the first error. */
  async results(): Promise<T[]> {
    const values: T[] = [];
    for await (const value of this) {
      values.push(value);
    }
    return values;
  }

  /**
   * Yields values and errors in the order of the tasks. If the package fails, each task without a result gets the
   * package's error.
   *
   * @throws CloudparError when the package was deleted, the master does not answer, or the pool was closed meanwhile.
   */
  async *settled(): AsyncGenerator<Settled<T>, void> {
    const buffer = new ResultBuffer(this.#session, true, { site: this.#site, tasks: this.#progress.tasks });
    const part = buffer.part(0);
    const attached = await this.#session.attach(this.packageId, this.#progress.tasks, part);
    const breaks = new Breaks();
    try {
      for (let left = attached.tasks; left > 0; ) {
        const next = buffer.take<T>();
        this.#progress = attached.progress.done > 0 ? attached.progress : this.#progress;
        if (next !== undefined) {
          left -= 1;
          yield next;
          if (breaks.isOverdue()) {
            await breaks.take(); // without this, the event loop would not run while buffered results are read
          }
        } else if (part.ended) {
          throw part.failure ?? new CloudparError(`the reading of package ${this.packageId} was ended`);
        } else {
          await buffer.wait();
        }
      }
    } finally {
      this.#session.forget(attached);
    }
  }

  /** Cancels the package: stops its running tasks and drops the others. */
  async cancel(): Promise<void> {
    await this.#session.cancel(this.packageId);
  }

  /** Deletes the package's results at the master. A running package is cancelled. */
  async acknowledge(): Promise<void> {
    await this.#session.connection.call('acknowledge', { package_ids: [this.packageId] });
  }
}

/**
 * Attaches to a package that was started earlier.
 *
 * @param id The package's id, or its first characters.
 * @throws TypeError when the id is not a string, or is empty.
 * @throws NotFound when the master knows no such package of this account, or several start with these characters.
 * @throws Gone when the package was deleted.
 * @throws SerializationError when its results are pickles.
 */
export async function attach<T>(session: Session, id: string, site: CallSite): Promise<Attachment<T>> {
  if (typeof id !== 'string' || id === '') {
    throw new TypeError('attach takes the id of a package, or the first characters of one');
  }
  const packageId = id.length < ID_LENGTH ? await find(session, id) : id;
  const { state, message, codec, progress } = await statusOf(session, packageId);
  if (state === 'expired') {
    throw new Gone(`package ${packageId} cannot be read any more: ${message ?? 'it was deleted'}`);
  }
  if (codec !== 'msgpack') {
    throw new SerializationError(
      `package ${packageId} was started in Python with a pickled function, so its results are pickles, which only ` +
        'Python reads: start it there by cloudpar.reference("package.module:function"), or attach to it in Python',
    );
  }
  return new Attachment<T>(session, packageId, progress, site);
}

/**
 * Returns the id among the account's newest packages that equals `id`, or else the only one that starts with it.
 *
 * @throws NotFound if there is none, or several start with it.
 */
async function find(session: Session, id: string): Promise<string> {
  const { packages } = await session.connection.call('list_packages', { limit: NEWEST });
  const found = packages.map(({ package_id }) => package_id).filter((each) => each.startsWith(id));
  const [first] = found.filter((each) => each === id || found.length === 1);
  if (first === undefined) {
    throw new NotFound(
      found.length > 1
        ? `${found.length} packages start with '${id}': give more of the id`
        : `no package '${id}' is among the newest ${NEWEST} of this account`,
    );
  }
  return first;
}

/** Returns a package's status. It contains no results, because the request names a cursor behind all results. */
async function statusOf(session: Session, packageId: string): Promise<Message<'PackageStatus'>> {
  const packages = [{ package_id: packageId, cursor: Number.MAX_SAFE_INTEGER }];
  const reply = await session.connection.call('await_tasks', { session: `${session.id}-status`, packages });
  const status = reply.packages[0];
  if (status === undefined) {
    throw new NotFound(`package ${packageId}: ${reply.missing[packageId] ?? 'the master does not know it'}`);
  }
  return status;
}
