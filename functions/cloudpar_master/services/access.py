import hmac
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.errors import Forbidden, InvalidToken
from cloudpar_protocol.routes import Role
from cloudpar_protocol.token_forms import is_made

from .backend import Backend, hash_token

_BY_COMMAND = " (cloudpar worker-token create), and start the worker with it"


class Caller(NamedTuple):
    """The role and account of a request's sender. Only a user has an account."""

    role: Literal["user", "worker", "admin"]
    account: AccountRecord | None = None


def identify(backend: Backend, token: str | None) -> Caller:
    """Find the caller that has a token.

    Raises:
        InvalidToken: The token is missing, unknown, revoked or expired.
    """
    if not token:
        raise InvalidToken(
            "no token: send the header 'Authorization: Bearer TOKEN' (CLOUDPAR_TOKEN or Pool(token=...))"
        )
    hashed = hash_token(token)
    if hmac.compare_digest(hashed, backend.worker_token_hash):
        return Caller("worker")
    if hmac.compare_digest(hashed, backend.admin_token_hash):
        return Caller("admin")
    # Check this before the look-up, so that tokens that strangers make up cause no reads: the operator pays for reads.
    if backend.only_made_tokens and not is_made(token):
        raise InvalidToken(
            "this token is not whole, or has a typing error: copy it again, from its first to its last character"
        )
    account = backend.accounts.by_token(hashed)
    if account is None:
        raise InvalidToken(
            "this token is unknown here: check that it is this master's (CLOUDPAR_TOKEN of a user, "
            "CLOUDPAR_WORKER_TOKEN of a worker, CLOUDPAR_ADMIN_TOKEN of an operator), or ask the operator for one"
        )
    whose = f"worker token {account.name!r}" if account.role == "worker" else f"token of account {account.name!r}"
    fix = f"ask the operator for a new one{_BY_COMMAND if account.role == 'worker' else ''}"
    if account.state == "revoked":
        raise InvalidToken(f"the {whose} was revoked: {fix}")
    if 0 < account.valid_until <= backend.clock.date(backend.clock.now()):
        expired_at = f"{datetime.fromtimestamp(account.valid_until, UTC):%Y-%m-%d %H:%M}"
        raise InvalidToken(f"the {whose} expired at {expired_at} UTC: {fix}")
    return Caller("worker") if account.role == "worker" else Caller("user", account)


def permit(caller: Caller, role: Role, route: str) -> None:
    """Check that the caller may use a route.

    Raises:
        Forbidden: The token is valid, but the route is not for its role.
    """
    if role not in {"any", caller.role}:
        raise Forbidden(f"{route} takes a token for the role {role!r}, and this one is for {caller.role!r}")
