from typing import Literal, NamedTuple, Protocol

from cloudpar_protocol.errors import IdempotencyConflict

MOST_US = 2**63 - 1
"""The largest quota: tables and messages hold 63 bits."""


class AccountRecord(NamedTuple):
    """An account as stored. Its free compute time is granted - spent - reserved.

    `spent_us` is what ended packages were charged, and `reserved_us` is what running ones hold.
    """

    account_id: str
    name: str
    token_hash: str
    state: Literal["active", "revoked"]
    granted_us: int
    spent_us: int
    reserved_us: int
    created_at: float

    @property
    def free_us(self) -> int:
        """Compute time that is neither spent nor reserved; at least 0."""
        return max(0, self.granted_us - self.spent_us - self.reserved_us)


class Reservation(NamedTuple):
    """The answer to a request for a slice: the granted part of it, maybe 0. `exhausted`: nothing can come back."""

    granted_us: int
    exhausted: bool


def name_taken(name: str, account_id: str) -> IdempotencyConflict:
    """Make the error that refuses a second account of a name."""
    return IdempotencyConflict(
        f"there is an account named {name!r} already ({account_id}): choose another name, or revoke that account first"
    )


class AccountStore(Protocol):
    """Accounts, tokens and quotas."""

    def create(self, account: AccountRecord) -> AccountRecord:
        """Write it unless an account of this id exists; returns what is stored.

        No two active accounts have the same name, also when several masters create accounts at the same time. (Releases
        up to 0.2.0 allowed several of a name; these stay.) A revoked account's name is free again.

        Raises:
            IdempotencyConflict: Another account has the token, or an active one has the name.
        """
        ...

    def get(self, account_id: str) -> AccountRecord | None:
        """Return the account as it is now."""
        ...

    def free_us(self, account_id: str) -> int:
        """Return what is free of the account's quota (0: no such account). A large answer may be a little old."""
        ...

    def by_token(self, token_hash: str) -> AccountRecord | None:
        """Return the account whose token has this SHA-256. It may be up to 60 s old."""
        ...

    def key(self, account_id: str) -> bytes | None:
        """Return the account's encrypted key as it was stored; None: it has none yet."""
        ...

    def keep_key(self, account_id: str, encrypted: bytes, instead_of: bytes | None) -> bytes | None:
        """Store an account's key if `instead_of` is stored. Returns what is stored then; None: no such account."""
        ...

    def list(self) -> list[AccountRecord]:
        """Return all accounts, oldest first."""
        ...

    def reserve(self, account_id: str, package_id: str, number: int, wanted_us: int) -> Reservation:
        """Set aside up to `wanted_us` for the package's slice `number`, never more than is free.

        A repeated call for the same slice has the same answer and reserves nothing more, but an answer of 0 is not
        kept. A settled package gets nothing, since no later call would give such a slice back. A revoked account gets
        nothing.
        """
        ...

    def settle(self, account_id: str, package_id: str, used_us: int, held_us: int = 0) -> int:
        """Charge an ended package: spend min(used, its slices + what is free), once, and give its slices back.

        `held_us` is what its slices add up to, as far as the package knows: a hint, which may be wrong, or 0. Returns
        what was charged; a repeated call returns the same.
        """
        ...

    def grant(self, account_id: str, key: str, quota_us: int) -> AccountRecord | None:
        """Add to the quota, at most up to MOST_US, or take from it, never below spent + reserved; once for each key.

        None: no such account.
        """
        ...

    def revoke(self, account_id: str) -> AccountRecord | None:
        """Refuse its token from now on. None: no such account."""
        ...
