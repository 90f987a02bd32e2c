"""`cloudpar account`: the operator's side."""

import hashlib
import secrets
from pathlib import Path

import click
import msgspec

from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, CreateAccount, GrantQuota, ListAccounts, RevokeAccount

from . import spans
from .access import admin_options, connect_admin, json_option
from .presentation import account_table, console, print_json


@click.group()
def account() -> None:
    """Create, list, grant and revoke accounts (needs the admin token)."""


@account.command()
@click.argument("name")
@click.option("--quota", "quota_us", type=spans.Span(), required=True, help="Compute time, such as 100h.")
@admin_options
@json_option
def create(
    *, name: str, quota_us: int, endpoint: str | None, admin_token: str | None, folder: Path | None, as_json: bool
) -> None:
    """Create an account and print its token, which nobody can look up later."""
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
    connection = connect_admin(endpoint, admin_token, folder)
    made = connection.call(routes.CREATE_ACCOUNT, request).account
    if as_json:
        print_json({"account": made, "token": token})
        return
    out = console()
    out.print(account_table([made]))
    out.print(f"Token of [bold]{made.name}[/], shown this once:\n\n  export CLOUDPAR_ENDPOINT={connection.endpoint}")
    out.print(f"  export CLOUDPAR_TOKEN={token}", soft_wrap=True)


@account.command("list")
@admin_options
@json_option
def list_accounts(*, endpoint: str | None, admin_token: str | None, folder: Path | None, as_json: bool) -> None:
    """List all accounts with their quotas."""
    accounts = connect_admin(endpoint, admin_token, folder).call(routes.LIST_ACCOUNTS, ListAccounts()).accounts
    if as_json:
        print_json({"accounts": accounts})
    else:
        console().print(account_table(accounts))


@account.command(context_settings={"ignore_unknown_options": True})
@click.argument("account_id")
@click.argument("quota_us", metavar="SPAN", type=spans.Span())
@admin_options
@json_option
def grant(
    *, account_id: str, quota_us: int, endpoint: str | None, admin_token: str | None, folder: Path | None, as_json: bool
) -> None:
    """Add compute time, such as 10h; a negative span takes some back, never below what is spent."""
    request = GrantQuota(idempotency_key=secrets.token_urlsafe(16), account_id=account_id, quota_us=quota_us)
    _show(connect_admin(endpoint, admin_token, folder).call(routes.GRANT_QUOTA, request).account, as_json)


@account.command()
@click.argument("account_id")
@admin_options
@json_option
def revoke(
    *, account_id: str, endpoint: str | None, admin_token: str | None, folder: Path | None, as_json: bool
) -> None:
    """Refuse the account's token from now on and cancel its running packages."""
    request = RevokeAccount(account_id=account_id)
    _show(connect_admin(endpoint, admin_token, folder).call(routes.REVOKE_ACCOUNT, request).account, as_json)


def _show(made: Account, as_json: bool) -> None:
    if as_json:
        print_json({"account": msgspec.to_builtins(made)})
    else:
        console().print(account_table([made]))
