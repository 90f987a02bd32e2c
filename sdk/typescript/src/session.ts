import { randomBytes } from 'node:crypto';
import { Acknowledgements } from './acknowledgements.ts';
import { Awaiter } from './awaiter.ts';
import { alreadyClosed } from './closed.ts';
import type { Connection } from './connection.ts';
import { type CloudparError, SealBroken } from './errors.ts';
import type { Events } from './events.ts';
import { FleetWatch } from './fleet-watch.ts';
import type { Message } from './messages.ts';
import { type Order, type PackageKey, startMessage } from './orders.ts';
import { Package } from './package.ts';
import type { Platform } from './platform.ts';
import { Poller } from './poller.ts';
import { type Output, type Receiver, ResultDispatcher } from './result-dispatcher.ts';
import { isSealed, Seals, sealedPackageId } from './seals.ts';
import { upload } from './uploads.ts';

/** In each of its two steps, closing waits at most this many seconds for a master that does not answer. */
const CLOSE_S = 2;

/** All running packages and requests between this client and its master. */
export class Session {
  readonly id = randomBytes(8).toString('hex');
  readonly connection: Connection;
  readonly #platform: Platform;
  readonly #dispatcher: ResultDispatcher;
  readonly #poller: Poller;
  /** Packages that were started elsewhere. */
  readonly #attached = new Set<Package>();
  readonly #acknowledgements: Acknowledgements;
  readonly events: Events;
  readonly #starting = new Set<Promise<unknown>>();
  readonly #ending = new AbortController();
  readonly #fleetWatch: FleetWatch;
  #who: Promise<Message<'HelloReply'>> | undefined;

  constructor(
    connection: Connection,
    events: Events,
    onOutput: (output: Output) => void = () => undefined,
    platform: Platform,
  ) {
    const awaiter = new Awaiter(this.id);
    this.connection = connection;
    this.events = events;
    this.#platform = platform;
    this.#acknowledgements = new Acknowledgements(connection);
    this.#fleetWatch = new FleetWatch(events, () => awaiter.underWay, platform.now);
    this.#dispatcher = new ResultDispatcher(connection, this.id, events, onOutput);
    this.#poller = new Poller(connection, awaiter, this.#dispatcher, this.#fleetWatch, platform);
  }

  /** Aborted when the session starts to close. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** @throws CloudparError when the session was closed before this call. */
  checkOpen(): void {
    if (this.ending.aborted) {
      throw alreadyClosed();
    }
  }

  /** Requests the role of the token and the account. */
  hello(): Promise<Message<'HelloReply'>> {
    const asked = this.connection.call('hello', {});
    this.#who = asked;
    asked.catch(() => {
      this.#who = this.#who === asked ? undefined : this.#who; // the next call asks again
    });
    return asked;
  }

  /**
   * Returns the key and the seals of a new package. Only the answer to `hello` contains the key for seals, so `hello`
   * is sent before the first package.
   */
  async newPackageKey(): Promise<PackageKey> {
    const idempotencyKey = randomBytes(16).toString('hex');
    const { seal_key, account_id } = await (this.#who ?? this.hello());
    const sealing = seal_key != null && account_id != null;
    const seals = sealing ? new Seals(seal_key, sealedPackageId(account_id, idempotencyKey)) : undefined;
    return { idempotencyKey, seals };
  }

  /**
   * Starts a package; its results go to the receiver. Without a receiver they stay at the master.
   *
   * @throws CloudparError when the upload of its data fails, or the master refuses the package or does not answer.
   * @throws the signal's reason once it is aborted. A package that may have started by then is cancelled. Only an
   *   unsealed package whose id has not arrived cannot be cancelled.
   */
  async start(order: Order, receiver: Receiver | undefined, signal: AbortSignal = this.ending): Promise<Package> {
    const { packed, packageKey } = order;
    const data = packed.data.type === 'blob' ? await upload(this.connection, packed.data, signal) : packed.data;
    signal.throwIfAborted();
    this.#poller.startRequested();
    let started: Package | undefined;
    const call = this.connection.call('start_tasks', startMessage(order, data, this.id), { lastTry: signal });
    this.#starting.add(call);
    try {
      const { package_id } = await call;
      const made = new Package(package_id, packed.n, this.#platform.now(), packageKey.seals);
      if (signal.aborted) {
        this.#acknowledgements.add(package_id, true);
        throw signal.reason;
      }
      started = receiver === undefined ? undefined : made;
      this.#begin(made, receiver);
      return made;
    } catch (error) {
      if (signal.aborted && packageKey.seals !== undefined) {
        // An attempt without an answer may have started the package.
        this.#acknowledgements.add(packageKey.seals.packageId, true);
      }
      throw error;
    } finally {
      this.#starting.delete(call);
      this.#poller.startDone(started);
    }
  }

  #begin(begun: Package, receiver: Receiver | undefined): void {
    if (receiver !== undefined) {
      this.#fleetWatch.begin();
      this.#dispatcher.begin(begun, receiver);
    }
  }

  /**
   * Requests the results of a package that was started elsewhere. The package continues when this session ends.
   *
   * @throws SealBroken when the package is sealed, and the master gives no key: its results cannot be verified.
   */
  async attach(packageId: string, tasks: number, receiver: Receiver): Promise<Package> {
    this.checkOpen();
    const seals = isSealed(packageId) ? await this.#sealsOf(packageId) : undefined;
    const attached = new Package(packageId, tasks, this.#platform.now(), seals);
    this.ending.throwIfAborted();
    this.#attached.add(attached);
    this.#begin(attached, receiver);
    this.#poller.add(attached);
    return attached;
  }

  /** Returns the seals of an existing package. Its key may not be that of new packages: operators may rotate keys. */
  async #sealsOf(packageId: string): Promise<Seals> {
    const { seal_key } = await this.connection.call('hello', { package_id: packageId });
    if (seal_key == null) {
      throw new SealBroken(
        `package ${packageId} is sealed, and this master gives no key to verify its results: update it`,
      );
    }
    return new Seals(seal_key, packageId);
  }

  /** Pauses or resumes the requests for a package's results. */
  pause(paused: Package, isPaused: boolean): void {
    this.#poller.pause(paused, isPaused);
  }

  /** Requests again the results that were left at the master. */
  rewind(left: Package): void {
    this.#poller.rewind(left);
  }

  /** Starts the waiting downloads for which their readers have room. */
  download(): void {
    this.#dispatcher.download();
  }

  /** Cancels some tasks of a package, or all; resolves with the tasks that will have no value. */
  async cancel(packageId: string, ranges: [number, number][] | null = null): Promise<readonly [number, number][]> {
    const reply = await this.connection.call('cancel_tasks', { package_id: packageId, ranges });
    return reply.cancelled;
  }

  /** Passes on nothing more of a package, which continues to run. */
  forget(forgotten: Package): void {
    this.#poller.drop(forgotten);
    this.#dispatcher.forget(forgotten);
    this.#attached.delete(forgotten);
  }

  /**
   * Records that no more results of a package are needed. Its tasks are soon cancelled, and its storage is freed. A
   * package that was started elsewhere stays as it is.
   */
  release(done: Package): void {
    const isOurs = this.#dispatcher.has(done) && !this.#attached.has(done);
    this.forget(done);
    if (isOurs) {
      this.#acknowledgements.add(done.id, done.phase === 'running');
    }
  }

  /** Cancels and frees the packages whose results this session reads, except attached ones, and ends all requests. */
  async close(reason: CloudparError): Promise<void> {
    this.#ending.abort(reason);
    await this.#briefly(Promise.allSettled(this.#starting));
    for (const each of this.#dispatcher.packages) {
      if (!this.#attached.has(each)) {
        this.#acknowledgements.add(each.id, each.phase === 'running');
      }
      this.#poller.drop(each);
      this.#dispatcher.lose(each, reason);
    }
    this.#poller.end();
    this.#fleetWatch.end();
    await this.#briefly(this.#acknowledgements.send());
    this.connection.close();
  }

  /** Waits at most CLOSE_S: the master may not answer. */
  async #briefly(something: Promise<unknown>): Promise<void> {
    const enough = new AbortController();
    const late = this.#platform.sleep(CLOSE_S, enough.signal);
    await Promise.race([something, late]).catch(() => undefined);
    enough.abort();
    await late.catch(() => undefined);
  }
}
