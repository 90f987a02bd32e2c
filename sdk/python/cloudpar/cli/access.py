"""Which master a command talks to, and with which token.

A data folder that is named wins, and no other option may name another master or token beside it; then come the options
and the environment (and, for a user's commands, the profile file); then the default data folder. Out of a data folder
an operator's commands take the admin token: on one's own machine one sees every account.
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
"""A person waits at the terminal, less long than a pool does. (A cold function may take some seconds, too.)"""


class _DataOption(click.Option):
    """It tells endpoint and tokens itself, so that an option for one of them would go unheeded."""

    def handle_parse_result(self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]) -> Any:
        given = [option for option in ("endpoint", "token", "admin_token") if option in opts]
        if self.name in opts and given:
            raise click.UsageError(
                f"--data tells the endpoint and the tokens of its master: leave out --{given[0].replace('_', '-')}, or "
                "--data",
                ctx,
            )
        return super().handle_parse_result(ctx, opts, args)


data_option = click.option(
    "--data", "folder", cls=_DataOption, type=click.Path(path_type=Path, file_okay=False),
    help="Data folder of a `cloudpar up` on this machine, instead of an endpoint and a token.",
)  # fmt: skip
endpoint_option = click.option(
    "--endpoint", envvar="CLOUDPAR_ENDPOINT", help="The master's URL. [env: CLOUDPAR_ENDPOINT]"
)


def user_options(command: Callable[P, R]) -> Callable[P, R]:
    """Options of a command for which a user's token is enough."""
    token = secret_option("--token", help="An account's token, or the admin token. [env: CLOUDPAR_TOKEN]")
    endpoint = click.option("--endpoint", help="The master's URL. [env: CLOUDPAR_ENDPOINT]")
    return endpoint(token(data_option(command)))


def admin_options(command: Callable[P, R]) -> Callable[P, R]:
    """Options of a command that needs the admin token."""
    token = secret_option(
        "--admin-token", envvar="CLOUDPAR_ADMIN_TOKEN", help="The admin token. [env: CLOUDPAR_ADMIN_TOKEN]"
    )
    return endpoint_option(token(data_option(command)))


def connect_user(endpoint: str | None, token: str | None, folder: Path | None) -> Connection:
    """Talk to the master as whoever is configured.

    Raises:
        ConfigurationError: Nobody is.
    """
    if folder is None:
        found = configure(endpoint, token)
        if found is not None:
            return connect(found.endpoint, found.token)
    return _connect_folder(folder)


def connect_admin(endpoint: str | None, admin_token: str | None, folder: Path | None) -> Connection:
    """Talk to the master as its operator.

    Raises:
        ConfigurationError: The admin token or its endpoint is not known.
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
    """A connection with a person's patience.

    Raises:
        ConfigurationError: The endpoint is no URL, or the token has characters that none has.
    """
    return Connection(endpoint.rstrip("/"), token, RetryPolicy(PATIENCE_S))


def _connect_folder(folder: Path | None) -> Connection:
    file = read_connection(folder or default_folder())
    return connect(file.endpoint, file.admin_token)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of every command whose output a script might read."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")(command)
