"""The commands that pages and messages name exist, with the options that they name."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import botocore.session
import click
import pytest
from botocore import xform_name

from cloudpar.cli.application import application
from cloudpar_master.core.policy import Policy
from docs import pages
from docs.pages import ROOT
from docs.settings import settings

SOURCES = [path for folder in ("sdk", "functions", "worker") for path in sorted((ROOT / folder).rglob("*.py"))]
OWN = re.compile(r"(?:^|[`$(]|\$ )\s*((?:\.venv/bin/)?cloudpar [a-z][^`\n]*)", re.MULTILINE)
AWS = re.compile(r"\baws ([a-z0-9-]+) ([a-z][a-z-]+)\b([^`\n&|]*)")
SETTING = re.compile(r"(?:--set|-c) (\w+)=")

EVERY_AWS_COMMAND = {"region", "query", "output"}
BESIDE_THE_API = {("s3", "rb"): {"force"}, ("logs", "tail"): {"since", "follow"}, ("sso", "login"): {"profile"}}
"""Commands of the AWS command line that are not in AWS's models."""


class Named(NamedTuple):
    """A text with its place."""

    where: Path
    text: str


def texts() -> Iterator[Named]:
    """Yield all pages and all sources; in sources, strings that continue in the next line are joined."""
    for page in pages.PAGES:
        yield Named(page, page.read_text(encoding="utf-8"))
    for source in SOURCES:
        yield Named(source, re.sub(r'"\s*\n\s*f?"', "", source.read_text(encoding="utf-8")))


TEXTS = list(texts())


def that_name(what: re.Pattern[str]) -> pytest.MarkDecorator:
    """Parametrize a test with the texts that match."""
    found = [each for each in TEXTS if what.search(each.text)]
    return pytest.mark.parametrize("page", found, ids=lambda named: str(named.where.relative_to(ROOT)))


@that_name(OWN)
def test_commands_of_this_project_exist_with_their_options(page: Named) -> None:
    for found in OWN.findall(page.text):
        command, words = _command(found.split()[1:])
        known = {option for each in command.params for option in [*each.opts, *each.secondary_opts]} | {"--help"}
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", " ".join(words)):
            assert option in known, found


def _command(words: list[str]) -> tuple[click.Command, list[str]]:
    command: click.Command = application
    while isinstance(command, click.Group) and words:
        name = re.sub(r"[^a-z-].*", "", words[0])
        if name not in command.commands:
            assert words[0].startswith("-") or not name or command is not application, words
            break
        command, words = command.commands[name], words[1:]
    return command, words


@that_name(AWS)
def test_commands_of_aws_exist_with_their_options(page: Named) -> None:
    for service, operation, rest in AWS.findall(page.text):
        options = set(re.findall(r"(?<!\S)--([a-z][a-z-]*)", rest)) - EVERY_AWS_COMMAND
        assert options <= _options(service, operation), f"aws {service} {operation}{rest}"


@cache
def _options(service: str, operation: str) -> set[str]:
    if (service, operation) in BESIDE_THE_API:
        return BESIDE_THE_API[service, operation]
    model = botocore.session.Session().get_service_model(service)
    names = {xform_name(name, "-"): name for name in model.operation_names}
    assert operation in names, f"aws {service} {operation}"
    shape = model.operation_model(names[operation]).input_shape
    members = shape.members if shape is not None else {}
    options = {xform_name(name, "-"): kind.type_name for name, kind in members.items()}
    return {*options, *(f"no-{name}" for name, kind in options.items() if kind == "boolean")}


@that_name(SETTING)
def test_settings_in_commands_exist(page: Named) -> None:
    for name in SETTING.findall(page.text):
        ours = name in Policy.__struct_fields__ and f"up --set {name}" in page.text
        assert name == "NAME" or ours or name in settings(), name
