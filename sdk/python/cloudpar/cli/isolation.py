"""Whose tasks a worker runs: the options, and a token that stays out of the list of processes."""

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click

_ARGUMENTS = slice(45, 47)
"""Where the addresses of a process's arguments stand in its line of state, after its name."""


def isolation_options(default: Literal["own", "shared"]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options of a command that starts a worker; together they are part of its greeting."""
    choice = click.option(
        "--isolation", type=click.Choice(["shared", "own"]), default=default, show_default=True,
        help="shared: tasks are of several people, and are confined. own: they are yours, and may do what you may.",
    )  # fmt: skip
    readable, writable = (
        click.option(
            f"--{name}", multiple=True, type=click.Path(exists=True, resolve_path=True),
            help=f"With shared: a file or folder that tasks may {verb} besides their own; may be repeated.",
        )
        for name, verb in (("readable", "read"), ("writable", "write"))
    )  # fmt: skip

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def checked(*arguments: Any, **options: Any) -> Any:
            if options["isolation"] == "own" and (options["readable"] or options["writable"]):
                raise click.UsageError(
                    "--readable and --writable go with --isolation shared: with own, tasks may read and write all that "
                    "you may"
                )
            return command(*arguments, **options)

        return choice(readable(writable(checked)))

    return add


def cover_argument(secret: str) -> None:
    """Overwrite a secret among this process's arguments: every user of the machine, and every task, may read them."""
    if sys.platform != "linux":
        return
    with suppress(OSError, ValueError):
        start, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_ARGUMENTS])
        position = ctypes.string_at(start, end - start).find(secret.encode())
        if position >= 0:
            ctypes.memset(start + position, ord("*"), len(secret.encode()))
