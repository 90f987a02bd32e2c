"""Options that hide the tokens that they read, because all users and tasks of a machine can read process arguments."""

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import psutil

from .presentation import printable

_ARGUMENTS = slice(45, 47)
"""The fields of /proc/PID/stat, counted after the process name, that contain the addresses of the process's arguments.
"""


def secret_option(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make an option whose value is overwritten in this process's arguments as soon as it is read (on Linux only)."""
    return click.option(name, callback=_cover, **attributes)


def _cover(_context: click.Context, _option: click.Parameter, secret: str | None) -> str | None:
    if secret and sys.platform == "linux":
        with suppress(OSError, ValueError):
            start, end = map(int, Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[_ARGUMENTS])
            position = ctypes.string_at(start, end - start).find(secret.encode())
            if position >= 0:
                ctypes.memset(start + position, ord("*"), len(secret.encode()))
    return secret


def overheard(secret: str) -> str | None:
    """Name the nearest ancestor process whose arguments contain the secret, such as "sudo (pid 123)".

    Returns None if no ancestor's arguments contain the secret.
    """
    for process in psutil.Process().parents():
        with suppress(psutil.Error):
            if any(secret in argument for argument in process.cmdline()):
                return f"{printable(process.name())} (pid {process.pid})"
    return None
