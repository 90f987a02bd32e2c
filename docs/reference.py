"""Write the reference of the SDK and the command line from their docstrings.

python docs/reference.py > docs/reference.md
"""

import inspect
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import click

import cloudpar
from cloudpar.cli import exit_codes
from cloudpar.cli.application import application
from cloudpar_protocol import errors as protocol_errors

MADE_BY_USERS = (cloudpar.Pool,)
"""Of all other classes the pool makes the instances: how is its own business."""

INTERNAL = {"Attachment.read", "Attachment.reading", "MapResults.under_way", "TaskFuture.set_cancelled"}
"""What is public for other modules of the package only."""

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Example|Examples):$")
_ENTRY = re.compile(r"(?P<names>[\w*., ]+): (?P<text>.*)")


def render() -> str:
    """The whole document."""
    parts = [
        "# Reference",
        "Generated from the docstrings by `python docs/reference.py > docs/reference.md`; the tests run the examples.",
        "## SDK: `cloudpar`",
        prose(inspect.getdoc(cloudpar) or ""),
    ]
    for name in cloudpar.__all__:
        value = getattr(cloudpar, name)
        if inspect.isclass(value):
            parts += describe_class(value)
        elif inspect.ismodule(value):
            parts += describe_errors(value)
        elif inspect.isfunction(value):
            parts += [f"### `{value.__name__}{_signature(value)}`", prose(inspect.getdoc(value) or "")]
    parts += ["## Command line: `cloudpar`", *describe_command(application, "cloudpar")]
    parts += ["### Exit codes", prose(inspect.getdoc(exit_codes) or "")]
    return "\n\n".join(parts) + "\n"


def describe_class(kind: type[Any]) -> Iterator[str]:
    """A class, and what it and its bases of this package offer in public."""
    yield f"### `{kind.__name__}{_signature(kind) if kind in MADE_BY_USERS else ''}`"
    yield prose(inspect.getdoc(kind) or "")
    for name, member in _members(kind):
        if f"{kind.__name__}.{name}" in INTERNAL:
            continue
        if isinstance(member, property):
            yield f"#### `{kind.__name__}.{name}`"
        else:
            yield f"#### `{kind.__name__}.{name}{_signature(member)}`"
        yield prose(inspect.getdoc(member) or "")


def _members(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("cloudpar"):
            continue
        for name, raw in vars(base).items():
            member = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
            public = not name.startswith("_") and (isinstance(member, property) or inspect.isfunction(member))
            if public and name not in seen and inspect.getdoc(member):
                seen.add(name)
                yield name, member


def _signature(value: Any) -> str:
    """Names and defaults; the types stand in the source, and most are said in the text."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(value).parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(parameters))


def describe_errors(module: ModuleType) -> Iterator[str]:
    """The error tree: the drawing, and what the SDK adds to it."""
    yield f"### `{module.__name__}`"
    yield prose(inspect.getdoc(protocol_errors) or "")
    added = [getattr(module, name) for name in module.__all__ if not hasattr(protocol_errors, name)]
    firsts = {kind: (inspect.getdoc(kind) or "").partition("\n\n")[0] for kind in added}
    yield "\n".join(f"- `{kind.__name__}`: {_joined(first)}" for kind, first in firsts.items())


def describe_command(command: click.Command, path: str) -> Iterator[str]:
    """A command with its options, and its own commands."""
    yield f"### `{_usage(command, path)}`"
    yield _joined(command.help or "")
    rows = [parameter.get_help_record(click.Context(command)) for parameter in command.params]
    options = [f"- `{names}`: {_joined(text)}" for names, text in filter(None, rows) if names.startswith("-")]
    if options:
        yield "\n".join(options)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from describe_command(inner, f"{path} {name}")


def _usage(command: click.Command, path: str) -> str:
    pieces = [piece for piece in command.collect_usage_pieces(click.Context(command)) if piece != "[OPTIONS]"]
    return " ".join([path, *pieces])


def prose(docstring: str) -> str:
    """Markdown of a docstring in Google's form."""
    blocks, lines = [], docstring.splitlines()
    while lines:
        line = lines.pop(0)
        section = _SECTION.fullmatch(line)
        if section or line.startswith("    "):
            body = [] if section else [line]
            while lines and (not lines[0] or lines[0].startswith("    ")):
                body.append(lines.pop(0))
            blocks.append(_section(section[1] if section else "", inspect.cleandoc("\n".join(["", *body]))))
        else:
            blocks.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(blocks)).strip()


def _section(name: str, body: str) -> str:
    match name:
        case "":
            return f"```text\n{body}\n```\n"
        case "Example" | "Examples":
            return f"\n```pycon\n{body}\n```\n"
        case "Returns" | "Yields":
            return f"\n{name}: {_joined(body)}\n"
        case _:
            return f"\n{name}:\n\n" + "\n".join(_entries(body)) + "\n"


def _entries(body: str) -> Iterator[str]:
    """`name: text`, whose text may go on, indented, on the next lines."""
    for entry in re.split(r"\n(?=\S)", body):
        match = _ENTRY.match(_joined(entry))
        yield f"- `{match['names']}`: {match['text']}" if match else f"- {_joined(entry)}"


def _joined(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.stdout.write(render())
