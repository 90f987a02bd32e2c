"""A disk that a test can break: the master's database and files then fail as on a full or failing disk.

Faults of a real disk need a compiler or a privileged user. This layer replaces the calls of Python that reach the data
folder, so the tests run on every machine.
"""

import errno
import io
import os
import sqlite3
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from cloudpar_master.adapters.embedded.database import Database

BY_PATH = ("open", "mkdir", "link", "rename", "replace", "unlink", "utime", "scandir", "stat")
"""The functions of `os` that take a path first."""
BY_DESCRIPTOR = ("write", "fsync", "fstat", "ftruncate")

SQLITE_CODES = {errno.ENOSPC: sqlite3.SQLITE_FULL, errno.EIO: sqlite3.SQLITE_IOERR}
SQLITE_TEXTS = {errno.ENOSPC: "database or disk is full", errno.EIO: "disk I/O error"}


class Disk:
    """Lets operations on a data folder fail, those of databases that are opened later included.

    Args:
        folder: The data folder.
        patch: Restores the replaced functions.
        number: The error of the system, ENOSPC or EIO.
        fails: Called for each operation; returns whether it fails.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, number: int, fails: Callable[[], bool]) -> None:
        self._folder = str(folder)
        self._number = number
        self._fails = fails
        self._opened: set[int] = set()
        for name in BY_PATH:
            patch.setattr(os, name, partial(self._by_path, getattr(os, name)))
        for name in BY_DESCRIPTOR:
            patch.setattr(os, name, partial(self._by_descriptor, getattr(os, name)))
        patch.setattr(Database, "__init__", _method(self._watch, Database.__init__))
        patch.setattr(io, "open", partial(self._open_file, io.open))
        patch.setattr(tempfile, "NamedTemporaryFile", partial(self._temporary_file, tempfile.NamedTemporaryFile))

    def _watch(self, real: Callable[..., None], database: Database, path: Path) -> None:
        real(database, path)
        for name in ("execute", "executemany"):
            setattr(database, name, partial(self._statement, getattr(database, name)))

    def _touch(self) -> None:
        if self._fails():
            raise OSError(self._number, os.strerror(self._number))

    def _by_path(self, real: Callable[..., Any], path: Any, *rest: Any, **more: Any) -> Any:
        ours = isinstance(path, (str, os.PathLike)) and str(path).startswith(self._folder)
        if ours:
            self._touch()
        result = real(path, *rest, **more)
        if ours and type(result) is int:
            self._opened.add(result)
        return result

    def _by_descriptor(self, real: Callable[..., Any], descriptor: int, *rest: Any) -> Any:
        if descriptor in self._opened:
            self._touch()
        return real(descriptor, *rest)

    def _open_file(self, real: Callable[..., Any], path: Any, *rest: Any, **more: Any) -> Any:
        if not str(path).startswith(self._folder):
            return real(path, *rest, **more)
        self._touch()
        return self._file(real(path, *rest, **more))

    def _temporary_file(self, real: Callable[..., Any], **where: Any) -> Any:
        self._touch()
        return self._file(real(**where))

    def _file(self, file: Any) -> Any:
        return _File(file, self._touch)

    def _statement(self, real: Callable[..., Any], statement: str, *values: Any) -> Any:
        # SQLite rolls back without writing.
        if statement != "ROLLBACK" and self._fails():
            error = sqlite3.OperationalError(SQLITE_TEXTS[self._number])
            error.sqlite_errorcode = SQLITE_CODES[self._number]
            raise error
        return real(statement, *values)


def _method(watch: Callable[..., None], real: Callable[..., None]) -> Callable[..., None]:
    def start(database: Database, path: Path) -> None:
        watch(real, database, path)

    return start


class _File:
    """A file whose reads and writes may fail."""

    def __init__(self, file: Any, touch: Callable[[], None]) -> None:
        self._file, self._touch = file, touch

    def read(self, size: int = -1) -> Any:
        self._touch()
        return self._file.read(size)

    def write(self, part: bytes) -> int:
        self._touch()
        return int(self._file.write(part))

    def peek(self) -> bytes:
        self._touch()
        return bytes(self._file.peek())

    def flush(self) -> None:
        self._touch()
        self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
