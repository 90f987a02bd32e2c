"""Makes a zip archive of units of a project (see `units`), for workers on other machines."""

import io
import logging
import zipfile
from collections.abc import Iterable
from pathlib import Path

from cloudpar._formatting.quantity import quantity
from cloudpar.errors import TooLarge

from .files import File
from .units import Unit

CODE_BYTES = 64 << 20
"""The limit for all source files and extension modules of an archive together, in bytes. Above it, packing fails."""
DATA_BYTES = 16 << 20
"""The limit for all other files of an archive together, in bytes. The largest files are left out until the others fit.
"""
_NAMED = 3
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""A fixed file time in the archive, so that the same files give the same archive."""

log = logging.getLogger("cloudpar")
_warned = set[str]()


def archive(files: Iterable[File]) -> bytes:
    """Make an archive of these files. If the data files together exceed their limit, leave out the largest, and warn.

    Raises:
        TooLarge: The code files alone exceed their limit.
    """
    files = list(files)
    code = [file for file in files if file.is_code]
    size = sum(file.size for file in code)
    if size > CODE_BYTES:
        raise TooLarge(
            f"the modules of the project that the task needs take {size:,} bytes, and {CODE_BYTES:,} travel with a "
            f"task: install them at the workers, or move the largest out of the package ({_largest(code)})"
        )
    data, left_out = _within(sorted((file for file in files if not file.is_code), key=lambda file: file.size))
    if left_out and _is_new(names := _largest(left_out)):
        log.warning(
            "cloudpar: data files that travel with a task may have %d MB together, so the largest of the project stay "
            "here: %s. If tasks need one, put it where the workers can read it.",
            DATA_BYTES >> 20, names,
        )  # fmt: skip
    return _zipped(sorted([*code, *data]))


def warn_of_secrets(units: Iterable[Unit]) -> None:
    """Warn about files that are left out because they may contain secrets, only once for the same files."""
    paths = [path for unit in units for path in unit.secrets()]
    if paths and _is_new(names := _first(paths)):
        log.warning(
            "cloudpar: files whose names look like secrets do not travel with the project: %s. If a task needs "
            "one, read it here and give the task its content as an argument.",
            names,
        )


def _is_new(names: str) -> bool:
    if names in _warned:
        return False
    _warned.add(names)
    return True


def _within(files: list[File]) -> tuple[list[File], list[File]]:
    room = DATA_BYTES
    for number, file in enumerate(files):
        room -= file.size
        if room < 0:
            return files[:number], files[number:]
    return files, []


def _largest(files: list[File]) -> str:
    largest = sorted(files, key=lambda file: file.size, reverse=True)
    return _first([f"{file.path} ({quantity(file.size, 'byte')})" for file in largest])


def _first(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


def _zipped(files: list[File]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in files:
            try:
                content = Path(file.path).read_bytes()
            except OSError:  # the file was just removed, or this user may not read it
                continue
            zipped.writestr(zipfile.ZipInfo(file.place, _LONG_AGO), content, zipfile.ZIP_DEFLATED)
    return memory.getvalue()
