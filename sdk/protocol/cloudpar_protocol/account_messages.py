"""Account service: the routes of operators, who create accounts and grant compute time."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .limits import PROTOCOL_VERSION
from .payloads import Hash, Id, Micros

ACCOUNT_NAME_CHARS = 100


class Account(Struct, frozen=True, kw_only=True):
    """One user of the pool. Running packages hold `reserved_us`, in addition to `spent_us`."""

    account_id: str
    name: str
    state: Literal["active", "revoked"]
    granted_us: Micros
    spent_us: Micros
    reserved_us: Micros = 0
    created_at: float


class CreateAccount(Struct, frozen=True, kw_only=True):
    """Create an account. The caller makes the token (256 random bits) and sends only its SHA-256, never the token."""

    v: int = PROTOCOL_VERSION
    idempotency_key: Id
    name: Annotated[str, Meta(min_length=1, max_length=ACCOUNT_NAME_CHARS)]
    token_hash: Hash
    quota_us: Micros


class GrantQuota(Struct, frozen=True, kw_only=True):
    """Add compute time. A negative amount takes some back, but never more than is unspent."""

    v: int = PROTOCOL_VERSION
    idempotency_key: Id
    account_id: Id
    quota_us: Annotated[int, Meta(ge=-(2**62), le=2**62)]


class RevokeAccount(Struct, frozen=True, kw_only=True):
    """Refuse the account's token from now on, and cancel its running packages."""

    v: int = PROTOCOL_VERSION
    account_id: Id


class AccountReply(Struct, frozen=True, kw_only=True):
    v: int = PROTOCOL_VERSION
    account: Account


class ListAccounts(Struct, frozen=True, kw_only=True):
    v: int = PROTOCOL_VERSION


class ListAccountsReply(Struct, frozen=True, kw_only=True):
    v: int = PROTOCOL_VERSION
    accounts: list[Account]
