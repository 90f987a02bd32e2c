"""Connects a command to its master.

A master at an address takes a token; the master of a stack on AWS takes AWS credentials.
"""

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, Protocol, TypedDict, TypeVar

import click

from cloudpar._client.package_search import Caller
from cloudpar.deployment import administration

from .access import admin_options, connect_admin, connect_user, user_options

P = ParamSpec("P")
R = TypeVar("R")


class Master(Caller, Protocol):
    """The methods of a master that commands call. A master at an address has them, and so has a stack's master."""

    endpoint: str


class MasterOptions(TypedDict):
    """The options that say where the master is."""

    endpoint: str | None
    folder: Path | None
    stack: str | None
    region: str | None


class User(MasterOptions):
    """The options of a user with a token, or of the operator of a stack."""

    token: str | None


class Operator(MasterOptions):
    """The options of an operator, who proves this role by the admin token or, for a stack, by AWS credentials."""

    admin_token: str | None


def as_user(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options of a user or of the operator of a stack."""
    return user_options(_stack_options(command))


def as_operator(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options of an operator."""
    return admin_options(_stack_options(command))


def _stack_options(command: Callable[P, R]) -> Callable[P, R]:
    stack = click.option(
        "--stack",
        help="A stack on AWS, such as Cloudpar-dev: as its operator, by your AWS credentials, without a token.",
    )
    region = click.option("--region", help="The stack's region.  [default: AWS_REGION, or the AWS profile's]")
    return stack(region(command))


def of_user(user: User) -> Master:
    """Connect to the master that a user's options name.

    Raises:
        UsageError: Both a stack and a data folder are named.
        CloudparError: See `connect_user`; for a stack, see `administration.connect`.
    """
    return _deployed(user) or connect_user(user["endpoint"], user["token"], user["folder"])


def of_operator(operator: Operator) -> Master:
    """Connect to the master that an operator's options name.

    Raises:
        UsageError: Both a stack and a data folder are named.
        CloudparError: See `connect_admin`; for a stack, see `administration.connect`.
    """
    return _deployed(operator) or connect_admin(operator["endpoint"], operator["admin_token"], operator["folder"])


def _deployed(options: MasterOptions) -> Master | None:
    if options["stack"] is None:
        return None
    if options["folder"] is not None:
        raise click.UsageError("--stack and --data name two different masters: give one of them")
    return administration.connect(options["stack"], options["region"])
