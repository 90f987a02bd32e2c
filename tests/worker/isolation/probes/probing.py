"""The parts of probes. `clues` is everything that an attacker could know; see shared.Shared."""

import ctypes
import os
import platform
from collections.abc import Callable
from typing import Any, NamedTuple

Clues = dict[str, Any]


class Probe(NamedTuple):
    """The attempt in words, and its code."""

    tried: str
    code: Callable[[Clues], Any]
    open_otherwise: bool
    """Whether it succeeds with isolation "own", where tasks are not confined: this shows that it can find something."""


PROBES: list[Probe] = []


def probe(tried: str, *, open_otherwise: bool = False) -> Callable[[Callable[[Clues], Any]], Callable[[Clues], Any]]:
    def keep(code: Callable[[Clues], Any]) -> Callable[[Clues], Any]:
        PROBES.append(Probe(tried, code, open_otherwise))
        return code

    return keep


def read(path: str, size: int = 1 << 16) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(size)


def reads(tried: str, path: str, *, open_otherwise: bool = False) -> None:
    """A probe that reads a file. Its path has clues in braces, as have those below."""
    probe(tried, open_otherwise=open_otherwise)(lambda clues: read(path.format(**clues)))


def lists(tried: str, path: str, *, open_otherwise: bool = False) -> None:
    """A probe that lists a folder."""
    probe(tried, open_otherwise=open_otherwise)(lambda clues: os.listdir(path.format(**clues)))


def opens(tried: str, path: str, mode: str, *, open_otherwise: bool = False) -> None:
    """A probe that opens a file."""
    probe(tried, open_otherwise=open_otherwise)(lambda clues: open(path.format(**clues), mode))


def signals(tried: str, process: str, number: int) -> None:
    """A probe that sends a signal to a process."""

    def send(clues: Clues) -> str:
        os.kill(clues[process], number)
        return "sent"

    probe(tried)(send)


def call(number: tuple[int, int], *arguments: Any) -> int:
    """Make a system call, given by its numbers on x86-64 and on ARM64."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(ctypes.c_long(number[platform.machine() != "x86_64"]), *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
