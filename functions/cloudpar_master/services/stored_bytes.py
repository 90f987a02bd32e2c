"""Limits how much each account stores, so that no account can fill the master's disk."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cloudpar_master.core.policy import Policy
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.errors import RateLimited, RequestError, TooLarge, Unavailable
from cloudpar_protocol.limits import BLOB_BYTES, LINK_S

from .account_limits import OPERATOR
from .backend import Backend
from .steps import Steps, finish

READ_S = 60.0
"""How old, in seconds, the count of an account may be while there is room. Bytes that this process admits count at
once."""

REREAD_S = 10.0
"""How old, in seconds, the count may be when it refuses a request: something may have been deleted meanwhile."""

WAIT_S = 5.0
"""The delay, in seconds, that a refusal names. After each further refusal the client waits longer."""

UPLOAD_BYTES = 1024**2
"""An upload counts as at least this many bytes, so that the uploads of an account at its limit can soon be listed."""

KNOWN = 1_000
"""How many accounts are remembered: the accounts that stored something last."""


LISTED = 500
"""How many uploads one step of a listing contains. With 50 GiB an account may store 51,200 uploads, and listing all of
them takes over 100 ms."""


class _Promise(NamedTuple):
    """The size of an upload that has a link, and the time when the link expires."""

    size: int
    until: float


_NONE = _Promise(0, 0.0)


class _Count:
    """The bytes that an account stores, and those that it is about to upload.

    Attributes:
        read_at: The time when `stored` was read.
        reading: Whether the account's uploads are being listed.
        stored: The bytes that the account stored at `read_at`.
        added: The bytes that were stored after `read_at`, in new packages and by uploads that have arrived.
        promised: The uploads that have a link and were not stored at `read_at`, by key.
        total: The sum of all these bytes. It is not added up at each request, because there may be 50,000 promises.
    """

    def __init__(self) -> None:
        self.read_at = float("-inf")
        self.reading = False
        self.stored = 0
        self.added = 0
        self.promised: dict[str, _Promise] = {}
        self._promised_bytes = 0

    @property
    def total(self) -> int:
        return self.stored + self.added + self._promised_bytes

    def promise(self, key: str, promise: _Promise) -> None:
        self.take(key)
        self.promised[key] = promise
        self._promised_bytes += promise.size

    def take(self, key: str) -> _Promise:
        """Remove a promise, and return it; _NONE if there is none."""
        promise = self.promised.pop(key, _NONE)
        self._promised_bytes -= promise.size
        return promise


class StoredBytes:
    """Counts the bytes that accounts store, and refuses requests to store too much.

    The count is read from the stores, so that neither a crash nor a lifecycle rule of a bucket makes it wrong. Between
    two readings, this process adds the bytes that it admits. Other processes of the same deployment do not see these
    additions, so together the processes may exceed the limit by the bytes that they admit between two readings.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._counts = Recent[str, _Count](KNOWN)
        self._arriving = Counter[str]()
        """By account: the bytes of the uploads that arrive now."""

    def check_start(self, account: AccountRecord, size: int) -> None:
        """Check that a package may start; `size` is how many bytes it stores, without uploads and results.

        A store that is never full needs no such check, and reading the count would cost requests there. With such a
        store, only uploads are refused.

        Raises:
            TooLarge: The bytes alone exceed the limit, so waiting would not help.
            RateLimited: The account stores too much, so it has to wait until something is deleted.
            Unavailable: The store is almost full.
        """
        free_bytes = self._backend.blobs.free_bytes()
        if free_bytes is not None:
            self._check(account, size, free_bytes)

    def promise(self, account: AccountRecord, key: str, size: int) -> list[str]:
        """Check that an account may upload a payload, and count it from now on.

        The links of one request may together need more room than there is. So each link must count before it is used.

        Returns:
            A list with the key; an empty list if the payload was counted before, or the account has no limit.

        Raises:
            TooLarge, RateLimited, Unavailable: See `check_start`.
        """
        if self.limit(account.account_id) is None:
            self._check(account, size, self._backend.blobs.free_bytes())
            return []
        size, count = max(size, UPLOAD_BYTES), self._read(account.account_id, READ_S)
        # If the client repeats the request, for example to continue an upload, the payload must not count twice.
        known = count.promised.get(key, _NONE).size
        if size > known:
            self._check(account, size - known, self._backend.blobs.free_bytes())
        # The largest size counts: a link for a larger payload with this key may still be used.
        count.promise(key, _Promise(max(size, known), self._backend.clock.now() + LINK_S))
        return [] if known else [key]

    def take_back(self, account_id: str, keys: Iterable[str]) -> None:
        """Stop counting uploads whose links no client got."""
        count = self._read(account_id, READ_S)
        for key in keys:
            count.take(key)

    @contextmanager
    def arriving(self, key: str, size: int) -> Iterator[None]:
        """Check an upload that arrives by a link, and count it while it arrives and afterwards.

        A link may be used again after its blob was deleted, or several times at once, and then each use takes space of
        its own. So the first use takes the room that was promised to the key, and each other use needs more room.
        Results are always admitted.

        Raises:
            TooLarge, RateLimited, Unavailable: See `check_start`.
        """
        account = self._backend.accounts.get(_owner(key))
        if account is None or self.limit(account.account_id) is None:
            if account is not None:
                self._check(account, size, self._backend.blobs.free_bytes())
            yield
            return
        account_id, size = account.account_id, max(size, UPLOAD_BYTES)
        count = self._read(account_id, READ_S)
        promise = count.promised.get(key, _NONE)
        if size > promise.size:
            self._check(account, size - promise.size, self._backend.blobs.free_bytes())
        count.take(key)
        self._arriving[account_id] += size
        try:
            yield
            # The link needs no room any more, even if the blob is soon deleted.
            if account_id in self._counts:
                self._counts[account_id].added += size
        except BaseException:
            # The client may use the link again. The link may have got another promise meanwhile.
            if promise.until > self._backend.clock.now() and key not in count.promised:
                count.promise(key, promise)
            raise
        finally:
            self._arriving[account_id] -= size
            if not self._arriving[account_id]:
                del self._arriving[account_id]

    def started(self, account_id: str, size: int) -> None:
        """Count the bytes that a new package stores, until the next reading includes them."""
        if account_id in self._counts:
            self._counts[account_id].added += size

    def limit(self, account_id: str) -> int | None:
        """Return how many bytes an account may store.

        None: there is no limit. This is so for the default account, whose user owns the disk.
        """
        return None if account_id == self._backend.default_account else self._backend.policy.stored_bytes

    def total(self, account_id: str) -> int:
        """Return how many bytes an account stores. The number may be some seconds old."""
        return self._held(account_id, REREAD_S)

    def renew(self, account_id: str) -> Steps[None]:
        """Read the count of an account again in steps, if it is old.

        After that, the next check of the account need not list all of its uploads in one step. For a store that is
        never full, do nothing: there a start is not checked (`check_start`), and reading costs requests.
        """
        free_bytes = self._backend.blobs.free_bytes()
        if free_bytes is None or self.limit(account_id) is None:
            return
        account = self._backend.accounts.get(account_id)
        if account is not None:
            held = self._total(account_id)
            refuses = _refusal(account, held, BLOB_BYTES, free_bytes, self._backend.policy) is not None
            yield from self._reading(account_id, REREAD_S if refuses else READ_S)

    def _check(self, account: AccountRecord, size: int, free_bytes: int | None) -> None:
        if free_bytes is not None and size > free_bytes:
            text = f"the master's disk has no room for {size:,} bytes more; what is left is kept for its own records"
            raise Unavailable(f"{text}: free space on it; until then, uploads and starts wait", WAIT_S)
        if self.limit(account.account_id) is None:
            return
        policy = self._backend.policy
        if _refusal(account, self._held(account.account_id, READ_S), size, free_bytes, policy) is not None:
            held = self._held(account.account_id, REREAD_S)
            refusal = _refusal(account, held, size, free_bytes, policy)
            if refusal is not None:
                raise refusal

    def _held(self, account_id: str, age_s: float) -> int:
        self._read(account_id, age_s)
        return self._total(account_id)

    def _total(self, account_id: str) -> int:
        count = self._counts.get(account_id)
        return (count.total if count else 0) + self._arriving[account_id]

    def _read(self, account_id: str, age_s: float) -> _Count:
        finish(self._reading(account_id, age_s))
        return self._counts[account_id]

    def _reading(self, account_id: str, age_s: float) -> Steps[None]:
        """Read the count of an account if it is older than this, in steps of LISTED uploads."""
        now = self._backend.clock.now()
        count = self._counts[account_id] = self._counts.get(account_id) or _Count()
        read_at = count.read_at
        if read_at > float("-inf") and (count.reading or 0 <= now - read_at < age_s):
            return
        count.reading, added, uploads_bytes, listed = True, count.added, 0, list[str]()
        try:
            for number, (key, size) in enumerate(self._backend.blobs.uploads(account_id), start=1):
                uploads_bytes += max(size, UPLOAD_BYTES)
                if key in count.promised:
                    listed.append(key)
                if number % LISTED == 0:
                    yield
        finally:
            count.reading = False
        if count.read_at != read_at:
            return  # another request has read it meanwhile
        count.stored = uploads_bytes + self._backend.packages.stored_bytes(account_id)
        # What was stored between two steps of this listing may be listed or not. It stays in `added`, so it may count
        # twice until the next reading.
        count.added -= added
        for key in [*listed, *(key for key, promise in count.promised.items() if promise.until <= now)]:
            count.take(key)
        count.read_at = now


def _refusal(
    account: AccountRecord, held: int, size: int, free_bytes: int | None, policy: Policy
) -> RequestError | None:
    """Return the error that refuses an account's request to store `size` bytes more; None if it may store them."""
    most = policy.stored_bytes
    if size > most:
        text = f"{size:,} bytes are over the {most:,} that account {account.name!r} may store"
        return TooLarge(f"{text}: split the work, let tasks read their data from storage, or {OPERATOR}")
    wait = f"this request waits until results are read, or ended packages are deleted; or {OPERATOR}"
    if held + size > most:
        return RateLimited(f"account {account.name!r} stores {held:,} of at most {most:,} bytes: {wait}", WAIT_S)
    # However small the disk is, an account leaves about as many bytes free as it stores, so that others can work, too.
    if free_bytes is not None and held + size > free_bytes:
        text = f"account {account.name!r} stores {held:,} bytes, and {free_bytes:,} are free on the master's disk"
        return RateLimited(f"{text}, which is its largest share: {wait}", WAIT_S)
    return None


def _owner(key: str) -> str:
    """Return the id of the account that uploads under this key; "" for the key of a result, which a worker uploads."""
    kind, _, rest = key.partition("/")
    return rest.partition("/")[0] if kind in {"code", "data"} else ""
