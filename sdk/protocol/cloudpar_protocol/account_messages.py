"""Account service: the routes of operators, who create accounts and grant compute time."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .message import Message
from .payloads import Hash, Id, Micros, Natural, Network, Seconds

ACCOUNT_NAME_CHARS = 100

Day = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)", max_length=10)]
"""A day in UTC: "2026-11-24"."""

TaskRole = Annotated[
    str, Meta(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/cloudpar/[A-Za-z0-9_+=,.@/-]+$(?!\n)", max_length=600)
]
"""The ARN of an IAM role whose path starts with /cloudpar/. A master may assume no other roles."""

TokenRole = Literal["user", "worker"]
"""The role of an account's token. An account of the role "worker" is a worker's own token: it has no packages."""


class Account(Struct, frozen=True, kw_only=True):
    """One user of a deployment.

    `spent_us` is the sum of the charges for its settled packages. `reserved_us` is the sum of the reserves of all its
    other packages. `stored_bytes` is the number of bytes that it stores, and `stored_limit` the number that it may
    store before its uploads and starts wait. Only a reply to `ListAccounts` with `storage` has these two fields. An
    account without limit has no `stored_limit`. `role` is the role of its token, and `valid_until` the time at which
    the token expires, in seconds since 1970 (0: never). `task_role` is the ARN of the IAM role whose credentials its
    tasks get; None: they get none. `network` says whether its tasks may use the network.
    """

    account_id: str
    name: str
    state: Literal["active", "revoked"]
    granted_us: Micros
    spent_us: Micros
    reserved_us: Micros = 0
    created_at: float
    stored_bytes: Natural | None = None
    stored_limit: Natural | None = None
    role: TokenRole = "user"
    valid_until: float = 0.0
    task_role: str | None = None
    network: Network = "outbound"


class CreateAccount(Message, frozen=True, kw_only=True):
    """Create an account. The caller makes the token (256 random bits) and sends only its SHA-256, never the token.

    `valid_s` is the number of seconds after which the token expires; 0: it does not expire. A master of an earlier
    release ignores `network`, so the caller must check `network` in the reply.
    """

    idempotency_key: Id
    name: Annotated[str, Meta(min_length=1, max_length=ACCOUNT_NAME_CHARS)]
    token_hash: Hash
    quota_us: Micros
    role: TokenRole = "user"
    valid_s: Seconds = 0.0
    network: Network = "outbound"


class GrantQuota(Message, frozen=True, kw_only=True):
    """Add compute time. A negative amount takes back compute time, but none that is spent or reserved."""

    idempotency_key: Id
    account_id: Id
    quota_us: Annotated[int, Meta(ge=-(2**62), le=2**62)]


class RevokeAccount(Message, frozen=True, kw_only=True):
    """Refuse the account's token from now on, and cancel its running packages."""

    account_id: Id


class RotateSeal(Message, frozen=True, kw_only=True):
    """Make a new key for the seals of the account. Existing packages keep their keys."""

    idempotency_key: Id
    account_id: Id


class SetRole(Message, frozen=True, kw_only=True):
    """Give the account's tasks the credentials of an IAM role; None: give them none from now on.

    Credentials that tasks have already stay valid until they expire, at most an hour later.
    """

    account_id: Id
    task_role: TaskRole | None = None


class SetNetwork(Message, frozen=True, kw_only=True):
    """Say whether the account's tasks may use the network, from their next leases on."""

    account_id: Id
    network: Network


class AccountReply(Message, frozen=True, kw_only=True):
    account: Account


class ListAccounts(Message, frozen=True, kw_only=True):
    """List the accounts whose tokens have this role, oldest first.

    If `storage` is set, the reply also has the bytes that each account stores. On AWS this takes several calls for each
    account.
    """

    storage: bool = False
    role: TokenRole = "user"


class ListAccountsReply(Message, frozen=True, kw_only=True):
    accounts: list[Account]


class ListUsage(Message, frozen=True, kw_only=True):
    """List the compute time that the accounts were charged, by day. The master knows the last 60 days.

    A reply may contain only a part of the list. The caller then sends the reply's `cursor` with its next request.
    """

    since: Day
    cursor: Annotated[str, Meta(max_length=2_000)] | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """The sum of the charges for an account's packages that were settled on one day. `packages` is their number."""

    account_id: str
    day: str
    charged_us: Micros
    packages: Natural


class ListUsageReply(Message, frozen=True, kw_only=True):
    """A part of the list. Several parts may contain the same account and day; the caller adds up their figures.

    `cursor` leads to the next part; None: this is the last part.
    """

    usage: list[Usage] = []
    cursor: str | None = None
