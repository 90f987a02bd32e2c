"""Which master a command talks to: one at an address, by a token, or a stack on AWS, by AWS credentials."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypedDict, TypeVar

import click

from cloudpar.deployment import administration
from cloudpar_protocol.routes import Route

from .access import admin_options, connect_admin, connect_user, user_options

P = ParamSpec("P")
R = TypeVar("R")


class Master(Protocol):
    """What both of them are to a command."""

    endpoint: str

    def call(self, route: Route[Any, Any], message: Any, /) -> Any:
        """Ask, and wait for the answer."""
        ...


class Place(TypedDict):
    """Where the master is."""

    endpoint: str | None
    folder: Path | None
    stack: str | None
    region: str | None


class User(Place):
    """Whoever has a token; of a stack, its operator."""

    token: str | None


class Operator(Place):
    """Whoever has the admin token; of a stack, whom IAM allows to invoke its account function."""

    admin_token: str | None


def as_user(command: Callable[P, R]) -> Callable[P, R]:
    """Options that name a user, or the operator of a stack."""
    return user_options(_stack_options(command))


def as_operator(command: Callable[P, R]) -> Callable[P, R]:
    """Options that name the operator."""
    return admin_options(_stack_options(command))


def _stack_options(command: Callable[P, R]) -> Callable[P, R]:
    stack = click.option(
        "--stack",
        help="A stack on AWS, such as Cloudpar-dev: as its operator, by your AWS credentials, without a token.",
    )
    region = click.option("--region", help="The stack's region.  [default: AWS_REGION, or the AWS profile's]")
    return stack(region(command))


def of_user(user: User) -> Master:
    """The master that a user named."""
    return _deployed(user) or connect_user(user["endpoint"], user["token"], user["folder"])


def of_operator(operator: Operator) -> Master:
    """The master that the operator named."""
    return _deployed(operator) or connect_admin(operator["endpoint"], operator["admin_token"], operator["folder"])


def _deployed(place: Place) -> Master | None:
    if place["stack"] is None:
        return None
    if place["folder"] is not None:
        raise click.UsageError("--stack and --data name two different masters: give one of them")
    return administration.connect(place["stack"], place["region"])
