"""Limits how much each account stores, so that no account can fill the master's disk."""

from collections.abc import Iterable

from cloudpar_master.core.policy import Policy
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.errors import RateLimited, RequestError, TooLarge, Unavailable
from cloudpar_protocol.limits import LINK_S

from .account_limits import OPERATOR
from .backend import Backend

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


class _Count:
    """The bytes that an account stores, and those that it is about to upload.

    Attributes:
        read_at: The time when `stored` was read.
        stored: The bytes that the account stored at `read_at`.
        added: The bytes that were stored after `read_at`, in new packages and by uploads that have arrived.
        promised: The uploads that have a link and were not stored at `read_at`: the size of each, and the time when its
            link expires, by key.
    """

    def __init__(self) -> None:
        self.read_at = float("-inf")
        self.stored = 0
        self.added = 0
        self.promised: dict[str, tuple[int, float]] = {}

    @property
    def total(self) -> int:
        return self.stored + self.added + sum(size for size, _ in self.promised.values())


class StoredBytes:
    """Counts the bytes that accounts store, and refuses requests to store too much.

    The count is read from the stores, so that neither a crash nor a lifecycle rule of a bucket makes it wrong. Between
    two readings, this process adds the bytes that it admits. Other processes of the same deployment do not see these
    additions, so together the processes may exceed the limit by the bytes that they admit between two readings.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._counts = Recent[str, _Count](KNOWN)

    def check_start(self, account: AccountRecord, size: int) -> None:
        """Check that a package may start; `size` is the bytes that it stores, without uploads and results.

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
            The key, unless the payload was counted before.

        Raises:
            TooLarge, RateLimited, Unavailable: See `check_start`.
        """
        if self.limit(account.account_id) is None:
            self._check(account, size, self._backend.blobs.free_bytes())
            return []
        size, count = max(size, UPLOAD_BYTES), self._read(account.account_id, READ_S)
        # If the client repeats the request, for example to continue an upload, the payload must not count twice.
        known, _ = count.promised.get(key, (0, 0.0))
        if size > known:
            self._check(account, size - known, self._backend.blobs.free_bytes())
        count.promised[key] = size, self._backend.clock.now() + LINK_S
        return [] if known else [key]

    def take_back(self, account_id: str, keys: Iterable[str]) -> None:
        """Stop counting uploads whose links no client got."""
        count = self._read(account_id, READ_S)
        for key in keys:
            count.promised.pop(key, None)

    def admit(self, key: str, size: int) -> None:
        """Check an upload that is about to arrive by a link, and count it. Results are always admitted.

        A link may be used again after its blob was deleted, and then this upload is not counted yet.

        Raises:
            TooLarge, RateLimited, Unavailable: See `check_start`.
        """
        account = self._backend.accounts.get(_owner(key))
        if account is not None:
            self.promise(account, key, size)

    def arrived(self, key: str) -> None:
        """Record that an upload is stored. Its link needs no room any more, even if the blob is soon deleted."""
        count = self._counts.get(_owner(key))
        if count is not None and key in count.promised:
            count.added += count.promised.pop(key)[0]

    def started(self, account_id: str, size: int) -> None:
        """Count the bytes that a new package stores, until the next reading includes them."""
        if account_id in self._counts:
            self._counts[account_id].added += size

    def limit(self, account_id: str) -> int | None:
        """Return how many bytes an account may store; None: no limit, for the account of the disk's owner."""
        return None if account_id == self._backend.default_account else self._backend.policy.stored_bytes

    def total(self, account_id: str) -> int:
        """Return how many bytes an account stores. The number may be some seconds old."""
        return self._read(account_id, REREAD_S).total

    def _check(self, account: AccountRecord, size: int, free_bytes: int | None) -> None:
        if free_bytes is not None and size > free_bytes:
            text = f"the master's disk has no room for {size:,} bytes more; what is left is kept for its own records"
            raise Unavailable(f"{text}: free space on it; until then, uploads and starts wait", WAIT_S)
        if self.limit(account.account_id) is None:
            return
        policy = self._backend.policy
        if _refusal(account, self._read(account.account_id, READ_S).total, size, free_bytes, policy) is not None:
            held = self._read(account.account_id, REREAD_S).total
            refusal = _refusal(account, held, size, free_bytes, policy)
            if refusal is not None:
                raise refusal

    def _read(self, account_id: str, age_s: float) -> _Count:
        now = self._backend.clock.now()
        count = self._counts.get(account_id) or _Count()
        self._counts[account_id] = count
        if 0 <= now - count.read_at < age_s:
            return count
        count.stored = self._backend.packages.stored_bytes(account_id)
        for key, size in self._backend.blobs.uploads(account_id):
            count.stored += max(size, UPLOAD_BYTES)
            count.promised.pop(key, None)
        count.promised = {key: each for key, each in count.promised.items() if each[1] > now}
        count.read_at, count.added = now, 0
        return count


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
