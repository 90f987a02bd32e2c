"""Combines the settings of a deployment: those that its stack keeps, those in a file, and those on the command line.

A setting is a name and a text, and infra/lib/settings.ts reads it. The stack keeps the settings that the operator gave;
all others have their defaults.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from cloudpar.errors import ConfigurationError

from .failures import DeploymentError

Settings = dict[str, str]

TABLES = {"packageTable": "PackageTable", "accountTable": "AccountTable"}
"""The settings that name tables, each with the stack's output that names the table in use."""

LOCAL = frozenset({"bundle"})
"""Settings that concern only this machine. The stack does not keep them, so they never count as changed."""

RECORD = "Settings"
"""The resource of a stack that keeps its settings."""


class Change(msgspec.Struct, frozen=True):
    """A setting that a deployment changes.

    Attributes:
        before: The old value; None means the default.
        after: The new value; None means the default.
    """

    name: str
    before: str | None
    after: str | None


class Request(msgspec.Struct, frozen=True):
    """The settings that the operator requests.

    Attributes:
        file: The settings of the operator's file. Each setting that the stack has must be in this file, in `given` or
            in `unset`. None means that there is no file, and the stack keeps its settings.
        given: The settings of --set. These settings take precedence over those of the file or of the stack.
        unset: Settings that return to their defaults.

    Raises:
        ConfigurationError: A setting is in `unset` and also in the file or in `given`.
    """

    file: Settings | None
    given: Settings
    unset: frozenset[str]

    def __post_init__(self) -> None:
        both = sorted(self.unset & (self.given.keys() | (self.file or {}).keys()))
        if both:
            raise ConfigurationError(
                f"{', '.join(both)}: set and unset at once; take it out of --set and of the file, or leave --unset away"
            )


def parse(settings: Iterable[str]) -> Settings:
    """Read NAME=VALUE, the form of --set.

    Raises:
        ConfigurationError: An argument has another form, or names the environment.
    """
    found: Settings = {}
    for each in settings:
        name, separator, value = each.partition("=")
        if not (name and separator):
            raise ConfigurationError(f"--set {each}: write NAME=VALUE, as in maxInstances=8")
        found[_checked(name)] = value
    return found


def read_file(path: Path) -> Settings:
    """Read a TOML file of settings, such as `maxInstances = 8`. The elements of a list are joined by commas.

    Raises:
        ConfigurationError: The file cannot be read, is not TOML, names the environment, or has a value that is not a
            text, a whole number, a boolean or a non-empty list of texts.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"{path} is no TOML file: {error}; write lines such as maxInstances = 8") from None
    return {_checked(name): _text(path, name, value) for name, value in found.items()}


def _checked(name: str) -> str:
    if name == "env":
        raise ConfigurationError("env is no setting, for --set or a file: name the environment by --env")
    return name


def _text(path: Path, name: str, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int():
            return str(value)
        case [_, *_] if all(isinstance(item, str) for item in value):
            return ",".join(map(str, value))
    raise ConfigurationError(f"{path}: {name} must be a text, a whole number, true, false, or a list of texts")


def kept(template: Mapping[str, Any]) -> Settings | None:
    """Return the settings that a deployed template keeps; None if its release did not keep settings."""
    record = template.get("Resources", {}).get(RECORD)
    if record is None:
        return None
    found: Settings = json.loads(record["Properties"]["Value"])
    return found


def recognized(template: Mapping[str, Any]) -> Settings:
    """Infer settings from the resources of a template that keeps none.

    The function infers only the settings whose loss would do the most harm: tables, the address of alarms, and the
    dashboard.
    """
    found: Settings = {}
    for setting, output in TABLES.items():
        table = in_use(template, output)
        if isinstance(table, str):  # a table outside of the stack, by its name
            found[setting] = table
    for resource in template.get("Resources", {}).values():
        if resource["Type"] == "AWS::SNS::Subscription":
            found["alarmEmail"] = str(resource["Properties"]["Endpoint"])
        elif resource["Type"] == "AWS::CloudWatch::Dashboard":
            found["dashboard"] = "true"
    return found


def in_use(template: Mapping[str, Any], output: str) -> object:
    """Return the value of an output in a template: a text, or a reference to a resource of the stack.

    None if the template has no such output.
    """
    return template.get("Outputs", {}).get(output, {}).get("Value")


def wanted(template: Mapping[str, Any] | None, request: Request, stack: str) -> Settings:
    """Determine the settings to deploy.

    Args:
        template: The deployed template; None if nothing is deployed.
        request: The settings that the operator requests.
        stack: The stack's name, for errors.

    Raises:
        DeploymentError: A setting would return to its default although `request.unset` does not name it; or the stack
            keeps no settings and the request has no file.
    """
    now = known(template)
    if template is not None and kept(template) is None and request.file is None:
        there = ", ".join(f"{name}={value}" for name, value in sorted(now.items()))
        raise DeploymentError(
            f"{stack} was deployed by a release that did not keep its settings: write all that it was given into a "
            f"file, and name it once by --config FILE" + (f" (its resources show {there})" if there else "")
        )
    base = now if request.file is None else request.file
    then = {name: value for name, value in (base | request.given).items() if name not in request.unset}
    lost = sorted(now.keys() - then.keys() - request.unset)
    if lost:
        values = ", ".join(f"{name}={now[name]}" for name in lost)
        unset = " ".join(f"--unset {name}" for name in lost)
        raise DeploymentError(
            f"{stack} has {values}, which the file does not name: add it to the file, or let it return to its default "
            f"by {unset}"
        )
    return then


def known(template: Mapping[str, Any] | None) -> Settings:
    """Return the settings of a deployed template, as far as the template shows them."""
    if template is None:
        return {}
    recorded = kept(template)
    return recognized(template) if recorded is None else recorded


def changes(before: Settings, after: Settings) -> list[Change]:
    """Return the settings that differ, sorted by name. Settings that concern only this machine (LOCAL) are left out."""
    names = sorted((before.keys() | after.keys()) - LOCAL)
    each = (Change(name, before.get(name), after.get(name)) for name in names)
    return [change for change in each if change.before != change.after]


def check_tables(before: Mapping[str, Any], after: Mapping[str, Any], named: Iterable[str], stack: str) -> None:
    """Refuse a deployment that would use other tables than before, unless the operator changes the tables' settings.

    Args:
        before: The deployed template.
        after: The template to deploy.
        named: The settings that change.
        stack: The stack's name, for errors.

    Raises:
        DeploymentError: The template uses another table, although `named` does not contain the table's setting. The
            other table does not contain the deployment's accounts and packages.
    """
    for setting, output in TABLES.items():
        there, then = in_use(before, output), in_use(after, output)
        if there is not None and there != then and setting not in set(named):
            raise DeploymentError(
                f"{stack} would use another table for its output {output} ({_named(there)} now, {_named(then)} then), "
                f"without the accounts and packages of the one in use: name the table to use by --set {setting}=NAME"
            )


def _named(value: object) -> str:
    match value:
        case str():
            return value
        case {"Ref": own}:
            return f"its own {own}"
    return "none"
