"""Finds the master to which a command connects, and the token.

If `--data` is given, no other option may name a master or a token. Otherwise the options and the environment name the
master; for users' commands the profile file may also name it. If no source names a master, or if the endpoint is
"local", a command uses the default data folder. A command that uses a data folder uses the admin token in this folder:
on your own machine you see every account.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from cloudpar._client.configuration import LOCAL, configure
from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar.errors import ConfigurationError

from .data_folder import default_folder, read_connection
from .secret_options import secret_option

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE_S = 20.0
"""How long a command repeats a request to a master that has answered before, in seconds. For the first answer, a
command waits as long as a pool does (FIRST_CONTACT_S).
"""


class _DataOption(click.Option):
    """The option `--data`. The data folder contains the endpoint and the tokens, so options for these are refused."""

    def handle_parse_result(self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]) -> Any:
        given = [option for option in ("endpoint", "token", "admin_token") if option in opts]
        if self.name in opts and given:
            raise click.UsageError(
                f"--data gives the endpoint and the tokens of its master: leave out --{given[0].replace('_', '-')}, or "
                "--data",
                ctx,
            )
        return super().handle_parse_result(ctx, opts, args)


data_option = click.option(
    "--data", "folder", cls=_DataOption, type=click.Path(path_type=Path, file_okay=False),
    help="Data folder of a `cloudpar up` on this machine, instead of an endpoint and a token.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
"""The option of every command whose output a script might read."""

endpoint_option = click.option(
    "--endpoint", envvar="CLOUDPAR_ENDPOINT", help="The master's URL. [env: CLOUDPAR_ENDPOINT]"
)


def user_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options of commands for which a user's token is enough."""
    token = secret_option("--token", help="An account's token, or the admin token. [env: CLOUDPAR_TOKEN]")
    endpoint = click.option("--endpoint", help="The master's URL. [env: CLOUDPAR_ENDPOINT]")
    return endpoint(token(data_option(command)))


def admin_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options of commands that need the admin token."""
    token = secret_option(
        "--admin-token", envvar="CLOUDPAR_ADMIN_TOKEN", help="The admin token. [env: CLOUDPAR_ADMIN_TOKEN]"
    )
    return endpoint_option(token(data_option(command)))


def connect_user(endpoint: str | None, token: str | None, folder: Path | None) -> Connection:
    """Connect to the configured master, or to the master of a data folder.

    Raises:
        ConfigurationError: The configuration is not valid; or the data folder is used, and its connection file is
            missing or not valid.
    """
    if folder is None:
        found = configure(endpoint, token)
        if found is not None:
            return connect(found.endpoint, found.token)
    return _connect_folder(folder)


def connect_admin(endpoint: str | None, admin_token: str | None, folder: Path | None) -> Connection:
    """Connect to the master with the admin token.

    Raises:
        ConfigurationError: Only one of endpoint and admin token is given, or one of them is not valid; or the data
            folder is used, and its connection file is missing or not valid.
    """
    if folder is not None or endpoint == LOCAL or not (endpoint or admin_token):
        return _connect_folder(folder)
    if not admin_token:
        raise ConfigurationError(
            "an endpoint is given but no admin token: add --admin-token or CLOUDPAR_ADMIN_TOKEN, or name the data "
            "folder of a master on this machine by --data"
        )
    if not endpoint:
        raise ConfigurationError("an admin token is given but no endpoint: add --endpoint or CLOUDPAR_ENDPOINT")
    return connect(endpoint, admin_token)


def connect(endpoint: str, token: str) -> Connection:
    """Make a connection that waits at most PATIENCE_S seconds for a master that does not answer.

    Raises:
        ConfigurationError: The endpoint is not a URL, or the token has characters that a token cannot have.
    """
    return Connection(endpoint.rstrip("/"), token, RetryPolicy(PATIENCE_S))


def _connect_folder(folder: Path | None) -> Connection:
    file = read_connection(folder or default_folder())
    return connect(file.endpoint, file.admin_token)
