"""Creates, lists and revokes accounts, and grants compute time, for operators."""

import hashlib
from typing import Literal

from msgspec.structs import replace

from cloudpar_master.core.events import CancelAsked
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.account_messages import (
    Account,
    AccountReply,
    CreateAccount,
    GrantQuota,
    ListAccounts,
    ListAccountsReply,
    ListUsage,
    ListUsageReply,
    RevokeAccount,
    RotateSeal,
    SetNetwork,
    SetRole,
    Usage,
)
from cloudpar_protocol.client_messages import HelloReply
from cloudpar_protocol.errors import BadRequest, Gone, IdempotencyConflict, NotFound
from cloudpar_protocol.version import __version__

from .account_keys import AccountKeys
from .backend import Backend
from .folding import Folding
from .isolation import each
from .steps import Steps
from .stored_bytes import StoredBytes


class AccountService:
    """The routes by which operators manage accounts, and `hello`, by which any caller learns its role."""

    def __init__(self, backend: Backend, stored: StoredBytes | None = None, folding: Folding | None = None) -> None:
        self._backend = backend
        self._folding = folding or Folding(backend)
        self._keys = AccountKeys(backend)
        self._stored = stored or StoredBytes(backend)

    def hello(
        self, role: Literal["user", "worker", "admin"], account: AccountRecord | None, package_id: str | None = None
    ) -> HelloReply:
        """Tell a caller its role and, if it is a user, its account with quota and key.

        If `package_id` is a package of the account, the key is the one with which this package was sealed.

        Raises:
            Unavailable: The account's key is not available now (see AccountKeys).
        """
        timeout_s = self._backend.policy.task_timeout_s
        if account is None:
            return HelloReply(release=__version__, role=role, task_timeout_s=timeout_s)
        return HelloReply(
            release=__version__,
            role=role,
            account_id=account.account_id,
            name=account.name,
            granted_us=account.granted_us,
            spent_us=account.spent_us,
            task_timeout_s=timeout_s,
            seal_key=self._seal_key(account.account_id, package_id),
        )

    def _seal_key(self, account_id: str, package_id: str | None) -> bytes | None:
        spec = None if package_id is None else self._backend.packages.spec(package_id)
        if spec is None or spec.account_id != account_id:
            return self._keys.key(account_id)
        return self._keys.key_of(account_id, spec.package_id, spec.start)

    def create_account(self, request: CreateAccount) -> AccountReply:
        """Make an account for a token that the caller made. The request contains only the token's hash.

        Raises:
            IdempotencyConflict: The idempotency key was used for another account, another account has the token, or an
                active account has the name.
        """
        account_id = hashlib.sha256(f"account#{request.idempotency_key}".encode()).hexdigest()[:16]
        now = self._backend.clock.date(self._backend.clock.now())
        stored = self._backend.accounts.create(
            AccountRecord(
                account_id=account_id,
                name=request.name,
                token_hash=request.token_hash,
                state="active",
                granted_us=request.quota_us,
                spent_us=0,
                reserved_us=0,
                created_at=now,
                role=request.role,
                valid_until=now + request.valid_s if request.valid_s else 0.0,
                network=request.network,
            )
        )
        if (stored.name, stored.token_hash) != (request.name, request.token_hash):
            raise IdempotencyConflict("this idempotency key was used before for another account: make a new key")
        return AccountReply(account=_public(stored))

    def list_accounts(self, request: ListAccounts) -> ListAccountsReply:
        """List the accounts of a role, oldest first.

        If the request sets `storage`, the list says how many bytes each account stores.
        """
        shown = self._with_storage if request.storage else _public
        accounts = self._backend.accounts.list()
        return ListAccountsReply(accounts=[shown(account) for account in accounts if account.role == request.role])

    def _with_storage(self, account: AccountRecord) -> Account:
        stored_bytes = self._stored.total(account.account_id)
        return replace(_public(account), stored_bytes=stored_bytes, stored_limit=self._stored.limit(account.account_id))

    def list_usage(self, request: ListUsage) -> ListUsageReply:
        """List what the accounts were charged on each day, ordered by day.

        Raises:
            BadRequest: The cursor is not one that this master has sent.
        """
        part = self._backend.accounts.usage(request.since, request.cursor)
        usage = sorted(part.usage, key=lambda each: (each.day, each.account_id))
        return ListUsageReply(usage=[Usage(**each._asdict()) for each in usage], cursor=part.cursor)

    def grant_quota(self, request: GrantQuota) -> AccountReply:
        """Add compute time to an account, once for each idempotency key. A negative amount takes compute time back.

        Raises:
            Gone: The account was revoked.
            NotFound: The account does not exist.
        """
        before = self._backend.accounts.get(request.account_id)
        if before is not None and before.state == "revoked":
            raise Gone(
                f"account {before.name!r} was revoked, for good, so that compute time is of no use to it: make another "
                "by 'cloudpar account create', and give its user the new token"
            )
        account = self._backend.accounts.grant(request.account_id, request.idempotency_key, request.quota_us)
        if account is None:
            raise NotFound(f"no account {request.account_id!r}: 'cloudpar account list' shows them")
        return AccountReply(account=_public(account))

    def revoke_account(self, request: RevokeAccount) -> Steps[AccountReply]:
        """Revoke the account, so that its token is refused, and cancel its running packages in steps.

        Raises:
            NotFound: The account does not exist.
            Unavailable: A package could not be cancelled now. The account is revoked; repeat the request.
        """
        account = self._backend.accounts.revoke(request.account_id)
        if account is None:
            raise NotFound(f"no account {request.account_id!r}: 'cloudpar account list' shows them")
        event = CancelAsked(reason="revoked", message="the operator revoked the account's token")
        running = list(self._backend.packages.running_heads(account.account_id))
        yield from each(running, lambda head: self._folding.confirm(head.package_id, "revoke", event))
        return AccountReply(account=_public(account))

    def rotate_seal(self, request: RotateSeal) -> AccountReply:
        """Give the account a new key for its seals, once for each idempotency key. Existing packages keep theirs.

        Raises:
            NotFound: The account does not exist.
            BadRequest: This master has no safe for keys, so that no package is sealed.
            Unavailable: The key cannot be made now. Repeat the request.
        """
        account = self._backend.accounts.get(request.account_id)
        if account is None:
            raise NotFound(f"no account {request.account_id!r}: 'cloudpar account list' shows them")
        self._keys.rotate(account.account_id, request.idempotency_key)
        return AccountReply(account=_public(account))

    def set_role(self, request: SetRole) -> AccountReply:
        """Set the IAM role whose credentials the account's tasks get, or remove it.

        Raises:
            BadRequest: This master has no AWS credentials to give.
            NotFound: The account does not exist.
        """
        if self._backend.roles is None:
            raise BadRequest(
                "this master cannot assume roles, since it is no deployment on AWS: tasks of a worker with isolation "
                "'own' or 'none' use the AWS credentials of the worker's user"
            )
        account = self._backend.roles.assign(request.account_id, request.task_role)
        if account is None:
            raise NotFound(f"no account {request.account_id!r}: 'cloudpar account list' shows them")
        return AccountReply(account=_public(account))

    def set_network(self, request: SetNetwork) -> AccountReply:
        """Set whether the account's tasks may use the network. This does not affect tasks that run already.

        Raises:
            NotFound: The account does not exist.
        """
        account = self._backend.accounts.set_network(request.account_id, request.network)
        if account is None:
            raise NotFound(f"no account {request.account_id!r}: 'cloudpar account list' shows them")
        return AccountReply(account=_public(account))


def _public(account: AccountRecord) -> Account:
    """Return an account as operators see it: without the hash of its token."""
    return Account(**{name: getattr(account, name) for name in AccountRecord._fields if name != "token_hash"})
