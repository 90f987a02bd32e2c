"""`cloudpar account`: an operator manages accounts."""

import json
import re
import secrets
from typing import Unpack

import click

from cloudpar._client.connection import Connection
from cloudpar.deployment.administration import Administration
from cloudpar.deployment.prices import SECRET_USD
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import (
    ACCOUNT_NAME_CHARS,
    Account,
    CreateAccount,
    GrantQuota,
    ListAccounts,
    RotateSeal,
    SetNetwork,
    SetRole,
)
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.payloads import Network
from cloudpar_protocol.proofs import hash_token
from cloudpar_protocol.tokens import new_token

from . import spans
from .access import json_option
from .account_search import find_account, revoke_account
from .listing_group import ListingGroup
from .master import Master, Operator, as_operator, of_operator
from .presentation import account_table, console, print_json, print_networks, print_roles, words

NO_ROLE = "none"
"""The word that takes an account's role away if an operator writes it in place of an ARN."""

_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/cloudpar/[A-Za-z0-9_+=,.@/-]+")
_EARLIER = re.compile(r"0\.[12]\.")
"""The releases whose masters cannot prove over plain HTTP that they know a token."""


@click.group(cls=ListingGroup)
def account() -> None:
    """Create, list and revoke accounts, and grant compute time (without a command: list).

    Needs the admin token, or with --stack AWS credentials.
    """


def _named(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    if not 1 <= len(text) <= ACCOUNT_NAME_CHARS:
        raise click.BadParameter(f"it has {len(text)} characters: give a name of 1 to {ACCOUNT_NAME_CHARS}")
    return text


@account.command()
@click.argument("name", callback=_named)
@click.option("--quota", "quota_us", type=spans.Span(), help="Compute time, such as 100h.")
@click.option("--hours", type=click.FloatRange(0, spans.LARGEST_HOURS), help="The same in hours.")
@click.option(
    "--secret",
    metavar="NAME",
    help="With --stack: keep the token in a new secret of Secrets Manager (0.40 USD a month) and do not show it.",
)
@click.option(
    "--network",
    type=click.Choice(["outbound", "none"]),
    default="outbound",
    show_default=True,
    help="Whether the account's tasks may use the network.",
)
@as_operator
@json_option
def create(
    *,
    name: str,
    quota_us: int | None,
    hours: float | None,
    secret: str | None,
    network: Network,
    as_json: bool,
    **operator: Unpack[Operator],
) -> None:
    """Create an account and print its token, which is shown only once. No other active account may have this name."""
    if (quota_us is None) == (hours is None):
        raise click.UsageError("how much compute time? Give --quota SPAN or --hours N, and only one of them")
    quota_us = round((hours or 0.0) * 3.6e9) if quota_us is None else quota_us
    if quota_us < 0:
        raise click.BadParameter("a new account's quota cannot be negative", param_hint="--quota")
    if secret is not None and operator["stack"] is None:
        raise click.UsageError("--secret keeps the token with AWS: give the --stack whose account it is")
    master = of_operator(operator)
    request, token = new_account(name, quota_us, _token_for(master), network)
    if secret is not None and isinstance(master, Administration):
        _create_with_secret(master, request, token, secret, as_json=as_json)
        return
    made = _created(master, request)
    if as_json:
        print_json({"account": made, "token": token})
        return
    out = console()
    out.print(account_table([made]))
    print_networks([made])
    out.print(f"Token of [bold]{words(made.name)}[/], shown this once:\n")
    out.print(f"  export CLOUDPAR_ENDPOINT={master.endpoint}\n  export CLOUDPAR_TOKEN={token}", soft_wrap=True)


def _created(master: Master, request: CreateAccount) -> Account:
    made: Account = master.call(routes.CREATE_ACCOUNT, request).account
    if made.network != request.network:
        raise click.ClickException(
            "this master is of an earlier release, which lets all tasks use the network. Update it. The token of the "
            f"new account was not shown, so revoke the account: cloudpar account revoke {made.account_id}"
        )
    return made


def _token_for(master: Master) -> str:
    """Make a token for a new account of a master.

    If the master's release is too old to prove that it knows a token, the token has no checksum: clients send a token
    with a checksum to such a master only over TLS.
    """
    is_earlier = isinstance(master, Connection) and _EARLIER.match(master.call(routes.HELLO, Hello()).release)
    return secrets.token_urlsafe(32) if is_earlier else new_token()


def new_account(
    name: str, quota_us: int, token: str | None = None, network: Network = "outbound"
) -> tuple[CreateAccount, str]:
    """Make the request for an account; also make a token unless `token` is given.

    The request contains only the token's hash, so that no log of the master can contain the token.
    """
    token = token or new_token()
    key = secrets.token_urlsafe(16)
    request = CreateAccount(
        idempotency_key=key, name=name, token_hash=hash_token(token), quota_us=quota_us, network=network
    )
    return request, token


def _create_with_secret(
    master: Administration, request: CreateAccount, token: str, secret: str, *, as_json: bool
) -> None:
    with master.keep_token(secret, token) as arn:
        made = _created(master, request)
    if as_json:
        print_json({"account": made, "secret": arn})
        return
    out = console()
    out.print(account_table([made]))
    out.print(f"Token of [bold]{words(made.name)}[/] in the secret {secret} ({SECRET_USD:.2f} USD a month).\n")
    read = f"aws secretsmanager get-secret-value --region {master.region} --secret-id {secret}"
    for line in (
        "In JavaScript it is found by AWS credentials that may read stack and secret:",
        "",
        f"  export AWS_REGION={master.region} CLOUDPAR_STACK={master.stack} CLOUDPAR_TOKEN_SECRET={secret}",
        "",
        "Elsewhere:",
        "",
        f"  export CLOUDPAR_ENDPOINT={master.endpoint}",
        f"  export CLOUDPAR_TOKEN=$({read} --query SecretString --output text)",
    ):
        out.print(line, markup=False, soft_wrap=True)


@account.command("list")
@as_operator
@json_option
def list_accounts(*, as_json: bool, **operator: Unpack[Operator]) -> None:
    """List all accounts with their quotas, and how many bytes each one stores."""
    accounts = of_operator(operator).call(routes.LIST_ACCOUNTS, ListAccounts(storage=True)).accounts
    if as_json:
        print_json({"accounts": accounts})
    else:
        console().print(account_table(accounts))
        print_roles(accounts)
        print_networks(accounts)


@account.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("quota_us", metavar="SPAN", type=spans.Span())
@as_operator
@json_option
def grant(*, name: str, quota_us: int, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Add compute time, such as 10h. A negative span takes time back, but none that is spent.

    NAME is the account's name, its id, or the first characters of its id.
    """
    master = of_operator(operator)
    account_id = find_account(master, name).account_id
    request = GrantQuota(idempotency_key=secrets.token_urlsafe(16), account_id=account_id, quota_us=quota_us)
    _show(master.call(routes.GRANT_QUOTA, request).account, as_json)


@account.command()
@click.argument("name")
@as_operator
@json_option
def revoke(*, name: str, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Refuse the account's token from now on and cancel its running packages. Its name is free again.

    NAME is the account's name, its id, or the first characters of its id.
    """
    _show(revoke_account(of_operator(operator), name), as_json)


@account.command("rotate-seal")
@click.argument("name")
@as_operator
@json_option
def rotate_seal(*, name: str, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Give the account a new key for the seals of its packages, for example because the key may have leaked.

    Packages that exist keep their key. Pools that are open keep it for their new packages, too, until they are opened
    again. NAME is the account's name, its id, or the first characters of its id.
    """
    master = of_operator(operator)
    account_id = find_account(master, name).account_id
    request = RotateSeal(idempotency_key=secrets.token_urlsafe(16), account_id=account_id)
    _show(master.call(routes.ROTATE_SEAL, request).account, as_json)


@account.command("set")
@click.argument("name")
@click.option(
    "--network",
    type=click.Choice(["outbound", "none"]),
    required=True,
    help="outbound: the account's tasks may use the network, as their worker lets them. none: they make no sockets.",
)
@as_operator
@json_option
def set_account(*, name: str, network: Network, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Change a limit of an account. The change holds for new leases; tasks that run keep what they have.

    With --network none, only workers run the account's tasks that can keep them from the network: those with isolation
    "shared", on Linux. NAME is the account's name, its id, or the first characters of its id.
    """
    master = of_operator(operator)
    account_id = find_account(master, name).account_id
    _show(master.call(routes.SET_NETWORK, SetNetwork(account_id=account_id, network=network)).account, as_json)


@account.command("set-role")
@click.argument("name")
@click.argument("arn")
@as_operator
@json_option
def set_role(*, name: str, arn: str, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Give the account's tasks the credentials of an IAM role; `none` as ARN takes them away (only with --stack).

    The role's path must start with /cloudpar/, and its trust policy must name this deployment and the account's id: the
    command prints this policy. A change holds for new leases; credentials that tasks have expire within an hour. NAME
    is the account's name, its id, or the first characters of its id.
    """
    if arn != NO_ROLE and not _ROLE.fullmatch(arn):
        raise click.BadParameter(
            f"{arn!r} is no ARN of a role whose path starts with /cloudpar/, such as "
            "arn:aws:iam::123456789012:role/cloudpar/ada; the deployment may assume no others",
            param_hint="ARN",
        )
    master = of_operator(operator)
    account_id = find_account(master, name).account_id
    task_role = None if arn == NO_ROLE else arn
    changed = master.call(routes.SET_ROLE, SetRole(account_id=account_id, task_role=task_role)).account
    policy = master.trust_policy(account_id) if task_role and isinstance(master, Administration) else None
    if as_json:
        print_json({"account": changed, "trust_policy": policy})
        return
    console().print(account_table([changed]))
    print_roles([changed])
    if policy is not None:
        console().print(f"The trust policy that {arn} needs:", markup=False, soft_wrap=True)
        console().print(json.dumps(policy, indent=2), markup=False, soft_wrap=True)


def _show(made: Account, as_json: bool) -> None:
    if as_json:
        print_json({"account": made})
    else:
        console().print(account_table([made]))
        print_networks([made])
