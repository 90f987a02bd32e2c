"""`cloudpar worker-token`: tokens of single workers, which expire and can be revoked one at a time."""

import secrets
import time
from typing import Unpack

import click
from rich.table import Table

from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import ACCOUNT_NAME_CHARS, Account, CreateAccount, ListAccounts, RevokeAccount
from cloudpar_protocol.errors import CloudparError
from cloudpar_protocol.proofs import hash_token
from cloudpar_protocol.tokens import new_token

from . import spans
from .access import json_option
from .account_search import revoke_account
from .listing_group import ListingGroup
from .master import Operator, as_operator, of_operator
from .presentation import console, frameless, print_json, state, words


@click.group("worker-token", cls=ListingGroup)
def worker_token() -> None:
    """Create, list and revoke tokens of single workers (without a command: list).

    Needs the admin token, or with --stack AWS credentials.
    """


@worker_token.command()
@click.argument("name")
@click.option(
    "--expires", "valid_us", type=spans.Span(), default="30d", show_default=True, help="After how long it expires."
)
@as_operator
@json_option
def create(*, name: str, valid_us: int, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Create a token for one worker and print it, only once. NAME says which worker it is for, such as its host."""
    if not 1 <= len(name) <= ACCOUNT_NAME_CHARS:
        raise click.BadParameter(f"it has {len(name)} characters: give a name of 1 to {ACCOUNT_NAME_CHARS}")
    if valid_us <= 0:
        raise click.BadParameter("the token would have expired already: give a positive span", param_hint="--expires")
    master, token = of_operator(operator), new_token()
    request = CreateAccount(
        idempotency_key=secrets.token_urlsafe(16), name=name, token_hash=hash_token(token), quota_us=0, role="worker",
        valid_s=valid_us / 1e6,
    )  # fmt: skip
    made: Account = master.call(routes.CREATE_ACCOUNT, request).account
    if made.role != "worker":
        master.call(routes.REVOKE_ACCOUNT, RevokeAccount(account_id=made.account_id))
        raise CloudparError(f"the master at {master.endpoint} is of an earlier release without such tokens: update it")
    if as_json:
        print_json({"worker_token": made, "token": token})
        return
    out = console()
    out.print(f"Worker token [bold]{words(made.name)}[/], valid until {_date(made)}, shown this once:\n")
    out.print(f"  export CLOUDPAR_ENDPOINT={master.endpoint}\n  export CLOUDPAR_WORKER_TOKEN={token}", soft_wrap=True)


@worker_token.command("list")
@as_operator
@json_option
def list_tokens(*, as_json: bool, **operator: Unpack[Operator]) -> None:
    """List the tokens of workers that were created, and when each expires."""
    listed = of_operator(operator).call(routes.LIST_ACCOUNTS, ListAccounts(role="worker")).accounts
    tokens = [each for each in listed if each.role == "worker"]  # a master of an earlier release ignores `role`
    if as_json:
        print_json({"worker_tokens": tokens})
    else:
        console().print(_table(tokens))


@worker_token.command()
@click.argument("name")
@as_operator
@json_option
def revoke(*, name: str, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Refuse a worker's token from now on. Its worker ends, and other workers run its tasks. The name is free again.

    NAME is the token's name, its id, or the first characters of its id.
    """
    revoked = revoke_account(of_operator(operator), name, "worker")
    if as_json:
        print_json({"worker_token": revoked})
    else:
        console().print(_table([revoked]))


def _table(tokens: list[Account]) -> Table:
    table = frameless("Worker tokens" if tokens else None)
    for heading in ("id", "name", "state", "valid until"):
        table.add_column(heading)
    for each in tokens:
        has_expired = each.state == "active" and 0 < each.valid_until <= time.time()
        shown = state("expired" if has_expired else each.state)
        table.add_row(each.account_id, words(each.name), shown, _date(each))
    return table


def _date(token: Account) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(token.valid_until))
