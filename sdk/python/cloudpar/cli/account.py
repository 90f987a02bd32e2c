"""`cloudpar account`: the operator's side."""

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypedDict, TypeVar, Unpack

import click
import msgspec

from cloudpar.deployment import administration
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, CreateAccount, GrantQuota, ListAccounts, RevokeAccount
from cloudpar_protocol.routes import Route

from . import spans
from .access import admin_options, connect_admin, json_option
from .presentation import account_table, console, print_json

P = ParamSpec("P")
R = TypeVar("R")


class Operator(TypedDict):
    """Who asks: the operator of a master that runs somewhere, by its admin token, or of a stack on AWS, by IAM."""

    endpoint: str | None
    admin_token: str | None
    folder: Path | None
    stack: str | None
    region: str | None


class Master(Protocol):
    """What both of them talk to."""

    endpoint: str

    def call(self, route: Route[Any, Any], message: Any, /) -> Any:
        """Ask, and wait for the answer."""
        ...


def operator_options(command: Callable[P, R]) -> Callable[P, R]:
    """Options that name the operator."""
    stack = click.option(
        "--stack", help="A stack on AWS, such as Cloudpar-dev: by your AWS credentials, no admin token."
    )
    region = click.option("--region", help="The stack's region.  [default: AWS_REGION, or the AWS profile's]")
    return admin_options(stack(region(command)))


def connect(operator: Operator) -> Master:
    """The master that the operator named."""
    if operator["stack"] is None:
        return connect_admin(operator["endpoint"], operator["admin_token"], operator["folder"])
    if operator["folder"] is not None:
        raise click.UsageError("--stack and --data name two different masters: give one of them")
    return administration.connect(operator["stack"], operator["region"])


@click.group()
def account() -> None:
    """Create, list, grant and revoke accounts (needs the admin token, or with --stack AWS credentials)."""


@account.command()
@click.argument("name")
@click.option("--quota", "quota_us", type=spans.Span(), help="Compute time, such as 100h.")
@click.option("--hours", type=click.FloatRange(min=0), help="The same in hours.")
@operator_options
@json_option
def create(
    *, name: str, quota_us: int | None, hours: float | None, as_json: bool, **operator: Unpack[Operator]
) -> None:
    """Create an account and print its token, which nobody can look up later."""
    if (quota_us is None) == (hours is None):
        raise click.UsageError("how much compute time? Give --quota SPAN or --hours N, and only one of them")
    quota_us = round((hours or 0.0) * 3.6e9) if quota_us is None else quota_us
    if quota_us < 0:
        raise click.BadParameter("a new account's quota cannot be negative", param_hint="--quota")
    # Made here and hashed: the token itself is known to nobody but the reader of this output.
    token = secrets.token_urlsafe(32)
    request = CreateAccount(
        idempotency_key=secrets.token_urlsafe(16),
        name=name,
        token_hash=hashlib.sha256(token.encode()).hexdigest(),
        quota_us=quota_us,
    )
    connection = connect(operator)
    made: Account = connection.call(routes.CREATE_ACCOUNT, request).account
    if as_json:
        print_json({"account": made, "token": token})
        return
    out = console()
    out.print(account_table([made]))
    out.print(f"Token of [bold]{made.name}[/], shown this once:\n\n  export CLOUDPAR_ENDPOINT={connection.endpoint}")
    out.print(f"  export CLOUDPAR_TOKEN={token}", soft_wrap=True)


@account.command("list")
@operator_options
@json_option
def list_accounts(*, as_json: bool, **operator: Unpack[Operator]) -> None:
    """List all accounts with their quotas."""
    accounts = connect(operator).call(routes.LIST_ACCOUNTS, ListAccounts()).accounts
    if as_json:
        print_json({"accounts": accounts})
    else:
        console().print(account_table(accounts))


@account.command(context_settings={"ignore_unknown_options": True})
@click.argument("account_id")
@click.argument("quota_us", metavar="SPAN", type=spans.Span())
@operator_options
@json_option
def grant(*, account_id: str, quota_us: int, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Add compute time, such as 10h; a negative span takes some back, never below what is spent."""
    request = GrantQuota(idempotency_key=secrets.token_urlsafe(16), account_id=account_id, quota_us=quota_us)
    _show(connect(operator).call(routes.GRANT_QUOTA, request).account, as_json)


@account.command()
@click.argument("account_id")
@operator_options
@json_option
def revoke(*, account_id: str, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Refuse the account's token from now on and cancel its running packages."""
    request = RevokeAccount(account_id=account_id)
    _show(connect(operator).call(routes.REVOKE_ACCOUNT, request).account, as_json)


def _show(made: Account, as_json: bool) -> None:
    if as_json:
        print_json({"account": msgspec.to_builtins(made)})
    else:
        console().print(account_table([made]))
