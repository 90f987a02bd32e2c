"""Makes an embedded master. Only this module knows all of the master's parts."""

import hashlib
from functools import partial
from typing import NamedTuple

from cloudpar_master.adapters.embedded.account_store import SqliteAccountStore
from cloudpar_master.adapters.embedded.blob_store import FileBlobStore
from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.master_clock import MasterClock
from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore, code_in_use
from cloudpar_master.adapters.embedded.task_queue import SqliteTaskQueue
from cloudpar_master.adapters.embedded.worker_registry import MemoryWorkerRegistry
from cloudpar_master.adapters.key_safe import AesGcmSafe
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord, AccountStore, Clock
from cloudpar_master.services.backend import Backend, hash_token
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_master.services.steps import Steps
from cloudpar_master.services.timer import Timer

from . import link_base
from .app import App, Calls
from .audit_file import AuditFile
from .blob_routes import BlobRoutes
from .data_folder import Connection, DataFolder
from .failure_log import FailureLog
from .fair_shares import FairShares
from .long_polling import LongPolling
from .proving import Proving
from .secret import key_secret, secret_of
from .storage_state import StorageState
from .wakeups import ANYTHING, Wakeups

PRACTICALLY_UNLIMITED_US = 100 * 365 * 86400 * 1_000_000
"""The quota of the default account, in microseconds: a hundred years."""


class Assembly(NamedTuple):
    """The parts of a master that its process uses.

    Attributes:
        blobs_kept_s: A blob that was not used for this many seconds belongs to no package, since no package lives
            longer.
        lease_s: A leased chunk goes back into the queue after this many seconds without a beat.
    """

    app: App
    long_polling: LongPolling
    wakeups: Wakeups
    timer: Timer
    queue: SqliteTaskQueue
    blobs: FileBlobStore
    blobs_kept_s: float
    lease_s: float
    database: Database
    clock: MasterClock
    failures: FailureLog

    def tick(self) -> Steps[int]:
        """Wake held retrievals and peeks for the chunks that wait, and do the timer's work in steps.

        A chunk whose lease has run out waits again, and only this call wakes a held request for it. Returns how many
        packages and lost chunks the timer handled.

        Raises:
            ExceptionGroup: Some packages could not be folded, for example because one is too busy now. All others were
                folded.
            sqlite3.Error: The queue cannot be read; the timer's work was done nevertheless.
        """
        try:
            self._wake_held()
        finally:  # packages must not wait for a queue that cannot be read
            done = yield from self.timer.tick()
        return done

    def _wake_held(self) -> None:
        needs = self.queue.waiting_needs()
        if needs:
            # ANYTHING wakes one more retrieval, even if no waiting chunk fits its worker. This retrieval removes chunks
            # of ended packages, and decides what happens to packages that no live worker can run. Each call wakes
            # another retrieval for that.
            self.wakeups.chunks_sent([*needs, ANYTHING])


def assemble(
    folder: DataFolder, connection: Connection, policy: Policy, *, new_secret: bool = False, of_pool: bool = False
) -> Assembly:
    """Make the master of a data folder.

    Args:
        folder: The data folder.
        connection: The master's endpoint and tokens.
        policy: The settings that the operator may change.
        new_secret: Whether a new secret may replace a lost one.
        of_pool: Whether a pool has started this master for itself, so that its callers may get links to files.

    Raises:
        DataFolderError: The database depends on a secret that the folder does not have, and `new_secret` is False; or
            a new secret cannot be written.
        sqlite3.Error: The database cannot be opened or converted.
        OSError: The secret cannot be read, the folder of blobs cannot be made, or an older database cannot be copied
            before its conversion.
    """
    database = Database(folder.database)
    try:
        secret = secret_of(folder, database, new=new_secret)
    except BaseException:
        database.close()
        raise
    wakeups, clock, ids = Wakeups(), MasterClock(database), RandomIds()
    queue = SqliteTaskQueue(database, clock, ids, wakeups.chunks_sent)
    base = link_base.current(connection.endpoint, files=of_pool)
    blobs_kept_s = policy.lifetime_s + policy.retention_s + policy.tombstone_s
    in_use = partial(code_in_use, database)
    blobs = FileBlobStore(
        folder.blobs, base, secret, clock, code_in_use=in_use, kept_s=blobs_kept_s, reserves=not of_pool
    )
    accounts = SqliteAccountStore(database, clock)
    backend = Backend(
        packages=SqlitePackageStore(database, wakeups.head_saved, blobs.started),
        accounts=accounts,
        queue=queue,
        registry=MemoryWorkerRegistry(None if database.fresh else clock.now()),
        blobs=blobs,
        clock=clock,
        ids=ids,
        policy=policy,
        worker_token_hash=hash_token(connection.worker_token),
        admin_token_hash=hash_token(connection.admin_token),
        safe=AesGcmSafe(lambda: key_secret(secret)),
        default_account=_default_account(accounts, connection.token, clock),
    )
    storage = StorageState(wakeups.wake_awaits)
    shares, dispatcher, failures = FairShares(), Dispatcher(backend), FailureLog(storage)
    long_polling = LongPolling(dispatcher, wakeups, storage, shares)
    proving = Proving((backend.worker_token_hash, backend.admin_token_hash), accounts.token_hashes, shares)
    calls = Calls(long_polling, proving, AuditFile(folder.audit, backend), failures, storage)
    blob_routes = BlobRoutes(blobs, backend.packages, shares, failures, dispatcher.stored)
    return Assembly(
        app=App(calls, proving, blob_routes, failures, shares),
        long_polling=long_polling,
        wakeups=wakeups,
        timer=Timer(backend, dispatcher.folding),
        queue=queue,
        blobs=blobs,
        blobs_kept_s=blobs_kept_s,
        lease_s=policy.lease_s,
        database=database,
        clock=clock,
        failures=failures,
    )


def _default_account(accounts: AccountStore, token: str, clock: Clock) -> str:
    """Return the id of the account of this token. Make the account if there is none yet."""
    token_hash = hash_token(token)
    known = accounts.by_token(token_hash)
    if known is not None:
        return known.account_id
    account_id = hashlib.sha256(f"default account#{token_hash}".encode()).hexdigest()[:16]
    # If connection.json is lost, the master makes a new token. This token gets a second account, beside the earlier
    # one.
    taken = any(each.name == "default" and each.state == "active" for each in accounts.list())
    accounts.create(
        AccountRecord(
            account_id=account_id,
            name=f"default-{account_id}" if taken else "default",
            token_hash=token_hash,
            state="active",
            granted_us=PRACTICALLY_UNLIMITED_US,
            spent_us=0,
            reserved_us=0,
            created_at=clock.date(clock.now()),
        )
    )
    return account_id
