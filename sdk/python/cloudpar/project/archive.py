"""The units of a project as a zip archive, for workers on other machines."""

import io
import logging
import zipfile
from collections.abc import Iterable
from pathlib import Path

from cloudpar.errors import TooLarge

from .units import File

CODE_BYTES = 64 << 20
"""All source files and extension modules of an archive together, in bytes; with more, nothing is sent."""
DATA_BYTES = 16 << 20
"""All other files of an archive together, in bytes; the largest ones beyond are left out, with a warning."""
_NAMED = 3
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""In place of the times of files, so that the same files make the same archive."""

log = logging.getLogger("cloudpar")
_warned = set[str]()


def archive(files: Iterable[File]) -> bytes:
    """Make the archive of these files, except the largest data files beyond the limit.

    Raises:
        TooLarge: The code alone is over its limit.
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
    if left_out and (names := _largest(left_out)) not in _warned:
        _warned.add(names)
        log.warning(
            "cloudpar: %d data files of the project do not travel to the workers, since those of a task may have %d MB "
            "in all: %s. If tasks need them, put them where the workers can read them.",
            len(left_out), DATA_BYTES >> 20, names,
        )  # fmt: skip
    return _zipped(sorted([*code, *data]))


def _within(files: list[File]) -> tuple[list[File], list[File]]:
    room = DATA_BYTES
    for number, file in enumerate(files):
        room -= file.size
        if room < 0:
            return files[:number], files[number:]
    return files, []


def _largest(files: list[File]) -> str:
    first = sorted(files, key=lambda file: file.size, reverse=True)[:_NAMED]
    return ", ".join(f"{file.path} ({file.size:,} bytes)" for file in first)


def _zipped(files: list[File]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in files:
            try:
                content = Path(file.path).read_bytes()
            except OSError:  # it has just been removed, or only others may read it
                continue
            zipped.writestr(zipfile.ZipInfo(file.place, _LONG_AGO), content, zipfile.ZIP_DEFLATED)
    return memory.getvalue()
