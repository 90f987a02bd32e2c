from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, Protocol

from cloudpar_protocol.account_messages import TokenRole
from cloudpar_protocol.errors import IdempotencyConflict
from cloudpar_protocol.payloads import Network

MOST_US = 2**63 - 1
"""The largest quota, in microseconds. It is bounded because tables and messages hold signed 64-bit integers. A grant
that would exceed it raises the quota only to this value."""


class AccountRecord(NamedTuple):
    """An account as stored. Its free compute time is granted - spent - reserved.

    An account with the role "worker" stands for the token of one worker, and has no packages. `valid_until` is the time
    at which the token expires, in seconds since 1970; 0: never.

    `task_role` is the ARN of the IAM role whose credentials the account's tasks get (see TaskRoles). `network` says
    whether the account's tasks may use the network. Tasks of accounts that earlier releases have made may use it.

    `spent_us` is the sum of the charges for settled packages. `reserved_us` is the sum of the slices of all other
    packages.
    """

    account_id: str
    name: str
    token_hash: str
    state: Literal["active", "revoked"]
    granted_us: int
    spent_us: int
    reserved_us: int
    created_at: float
    role: TokenRole = "user"
    valid_until: float = 0.0
    task_role: str | None = None
    network: Network = "outbound"

    @property
    def free_us(self) -> int:
        """Compute time that is neither spent nor reserved; at least 0."""
        return max(0, self.granted_us - self.spent_us - self.reserved_us)


class Reservation(NamedTuple):
    """The answer to a request for a slice.

    `granted_us` is the part of the slice that was granted; it may be 0. `exhausted` says whether waiting is useless:
    either no other package of the account can give compute time back, or this package may not get any.
    """

    granted_us: int
    exhausted: bool


class DayUsage(NamedTuple):
    """The sum of an account's charges on one day, and the number of its packages that were settled on this day.

    `day` is a day in UTC, such as "2026-11-24".
    """

    account_id: str
    day: str
    charged_us: int
    packages: int


class UsagePart(NamedTuple):
    """A part of a list of charges, and the cursor of the next part; None: there is no further part."""

    usage: Sequence[DayUsage]
    cursor: str | None


def day_of(date: float) -> str:
    """Return the day (UTC) of a time in seconds since 1970.

    >>> day_of(1_800_000_000.0)
    '2027-01-15'
    """
    return datetime.fromtimestamp(date, UTC).date().isoformat()


def name_taken(name: str, account_id: str) -> IdempotencyConflict:
    """Make the error that refuses a second active account with the same name."""
    return IdempotencyConflict(
        f"there is an account named {name!r} already ({account_id}): choose another name, or revoke that one first"
    )


class AccountStore(Protocol):
    """Accounts, tokens and quotas."""

    def create(self, account: AccountRecord) -> AccountRecord:
        """Store an account, unless one with this id exists. Returns the account that is stored.

        No two active accounts get the same name, even if several masters create accounts at the same time. (Releases up
        to 0.2.0 allowed several accounts of one name; such accounts stay.) A revoked account's name is free again.

        Raises:
            IdempotencyConflict: Another account has the token, or an active account has the name.
        """

    def get(self, account_id: str) -> AccountRecord | None:
        """Return the account as it is now; None if it does not exist."""

    def free_us(self, account_id: str) -> int:
        """Return how much of the quota is free, in microseconds; 0 if there is no such account.

        An answer of at least one hour of compute time may be some seconds old. A smaller answer is always up to date.
        """

    def by_token(self, token_hash: str) -> AccountRecord | None:
        """Return the account whose token has this SHA-256, as it was at most 60 s ago; None if there is none."""

    def network(self, account_id: str) -> Network:
        """Return whether the account's tasks may use the network, as it was at most 10 s ago."""

    def offline(self) -> Collection[str]:
        """Return the ids of all accounts whose tasks may not use the network, as they were at most 10 s ago."""

    def set_network(self, account_id: str, network: Network) -> AccountRecord | None:
        """Set whether the account's tasks may use the network. Returns the account; None if it does not exist."""

    def key(self, account_id: str) -> bytes | None:
        """Return the account's encrypted key as it was stored; None if it has no key yet."""

    def keep_key(self, account_id: str, encrypted: bytes, instead_of: bytes | None) -> bytes | None:
        """Store an account's key, if the stored key is `instead_of` (None: if there is no key yet).

        Returns the key that is stored after this call; None if the account does not exist.
        """

    def list(self) -> list[AccountRecord]:
        """Return all accounts, oldest first."""

    def reserve(self, account_id: str, package_id: str, number: int, wanted_us: int) -> Reservation:
        """Reserve up to `wanted_us` for the package's slice `number`, never more than is free.

        A repeated call for the same slice returns the same answer and reserves nothing more. An answer of 0 is the
        exception: it is not stored, and a repeated call may reserve something. A settled package gets nothing, since no
        later call would give such a slice back. An account that is revoked or does not exist gets nothing.
        """

    def settle(self, account_id: str, package_id: str, used_us: int, held_us: int = 0) -> int:
        """Charge the account for an ended package, once, and give the slices of the package back.

        The charge is `used_us`, but at most the sum of the slices plus what is free of the quota. `held_us` is the sum
        of the slices as the package knows it: a hint, which may be wrong or 0. Returns the charge; a repeated call
        returns the same charge.
        """

    def usage(self, since: str, cursor: str | None = None) -> UsagePart:
        """Return charges of the days from `since` on: the first part, or the part to which `cursor` leads.

        If several parts contain the same account and day, the caller adds their charges up. A charge may be missing for
        some seconds after `settle` has returned. Charges are kept for at least 60 days.

        Raises:
            BadRequest: The cursor is not one that this method has returned.
        """

    def grant(self, account_id: str, key: str, quota_us: int) -> AccountRecord | None:
        """Add `quota_us`, which may be negative, to the quota.

        A call that is repeated under the same idempotency key `key` changes nothing. The quota stays between spent +
        reserved and MOST_US. Returns the account after that; None if it does not exist.
        """

    def revoke(self, account_id: str) -> AccountRecord | None:
        """Revoke the account for good. Returns the account after that; None if it does not exist.

        Its token is refused as soon as `by_token` returns the revoked account.
        """
