from typing import Literal, NamedTuple, Protocol

from cloudpar_protocol.errors import IdempotencyConflict

MOST_US = 2**63 - 1
"""The largest quota: tables and messages hold 63 bits."""


class AccountRecord(NamedTuple):
    """An account as stored. Free compute time is granted - spent - reserved.

    `spent_us` is what ended packages were charged, `reserved_us` what running ones hold.
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
    """The answer for a slice: what was granted, from 0 to what was wanted. `exhausted`: nothing can come back."""

    granted_us: int
    exhausted: bool


def name_taken(name: str, account_id: str) -> IdempotencyConflict:
    """The refusal of a second account of a name."""
    return IdempotencyConflict(
        f"there is an account named {name!r} already ({account_id}): choose another name, or revoke that account first"
    )


class AccountStore(Protocol):
    """Accounts, tokens and quotas."""

    def create(self, account: AccountRecord) -> AccountRecord:
        """Write it unless an account of this id exists; returns what is stored.

        An active account has its name alone, also when several masters create accounts at the same time. (Releases up
        to 0.2.0 allowed several of a name; these stay.) A revoked account's name is free again.

        Raises:
            IdempotencyConflict: Its token is that of an account of another id, or its name that of an active one.
        """
        ...

    def get(self, account_id: str) -> AccountRecord | None:
        """The account now."""
        ...

    def free_us(self, account_id: str) -> int:
        """What is free of the account's quota (0: no such account); while there is plenty, a little old."""
        ...

    def by_token(self, token_hash: str) -> AccountRecord | None:
        """The account whose token has this SHA-256; may be up to 60 s old."""
        ...

    def key(self, account_id: str) -> bytes | None:
        """The account's key as it was kept, encrypted; None: it has none yet."""
        ...

    def keep_key(self, account_id: str, encrypted: bytes, instead_of: bytes | None) -> bytes | None:
        """Store an account's key if what is there is `instead_of`; returns what is stored then. None: no account."""
        ...

    def list(self) -> list[AccountRecord]:
        """All of them, oldest first."""
        ...

    def reserve(self, account_id: str, package_id: str, number: int, wanted_us: int) -> Reservation:
        """Set aside up to `wanted_us` for the package's slice `number`, never more than is free.

        A repeated call for the same slice has the same answer and reserves nothing more; but an answer of 0 is not
        kept. A settled package gets nothing: no later call would give such a slice back. A revoked account gets
        nothing.
        """
        ...

    def settle(self, account_id: str, package_id: str, used_us: int, held_us: int = 0) -> int:
        """The package has ended: spend min(used, its slices + what is free), once, and give its slices back.

        `held_us` is what its slices add up to, as far as the package knows: a hint, which may be wrong, or 0. Returns
        what was charged; a repeated call returns the same.
        """
        ...

    def grant(self, account_id: str, key: str, quota_us: int) -> AccountRecord | None:
        """Add to the quota (or take, never below spent + reserved), at most to MOST_US, once for each key.

        None: no such account.
        """
        ...

    def revoke(self, account_id: str) -> AccountRecord | None:
        """Refuse its token from now on. None: no such account."""
        ...
