"""Captures what a task writes to standard output and error, through Python and through the file descriptors.

Descriptors 1 and 2 of an executor are two anonymous files. The agent also holds these files, so it can read the output
of a task that crashed. After each task, two system calls check whether the files are empty. The executor reads the
files only if one of them is not empty.
"""

import fcntl
import io
import os
import sys

from cloudpar_protocol.limits import OUTPUT_BYTES

from .anonymous_file import anonymous_file

_NOTE_BYTES = 80
"""The most bytes of the note about output that was left out."""


def open_output(folder: str | None = None) -> int:
    """Open a new output file, to which each write appends; return its descriptor. For `folder` see `anonymous_file`."""
    descriptor = anonymous_file("output", folder)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    return descriptor


def held_bytes(descriptor: int) -> int:
    """Return the size of an output file, or the space allocated for the file, whichever is more."""
    status = os.fstat(descriptor)
    return max(status.st_size, 512 * status.st_blocks)


def read_output(descriptor: int) -> str | None:
    """Return the start of an output file, at most OUTPUT_BYTES in UTF-8; None if the file is empty.

    If the file is longer, the text ends with a note about the approximate size of the rest.
    """
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if not size:
        return None
    room = OUTPUT_BYTES - _NOTE_BYTES
    head = os.pread(descriptor, OUTPUT_BYTES, 0)
    text = head.decode(errors="replace")
    encoded = text.encode(errors="replace")
    if size <= OUTPUT_BYTES and len(encoded) <= OUTPUT_BYTES:
        return text
    kept = encoded[:room].decode(errors="ignore")
    lost = max(size - room, 1)
    return f"{kept}\n... cut here: about {lost} of {size} bytes are left out ..."


class Capture:
    """Makes descriptors 1 and 2 of an executor write to the two output files, and reads these files after each task."""

    def __init__(self, stdout: int, stderr: int) -> None:
        # Task code may close or replace descriptors 1 and 2, so this class reads the files by descriptors of its own.
        self._stdout, self._stderr = os.dup(stdout), os.dup(stderr)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        self.restore()

    @property
    def descriptors(self) -> tuple[int, int]:
        """The descriptors by which this class reads the files."""
        return self._stdout, self._stderr

    @staticmethod
    def restore() -> None:
        """Make sys.stdout and sys.stderr write to descriptors 1 and 2, even if the last task replaced these objects."""
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            stream = getattr(sys, name)
            if getattr(stream, "_of_executor", None) is not True or stream.closed:
                fresh = _Stream(
                    io.FileIO(descriptor, "w", closefd=False),
                    encoding="utf-8",
                    errors="backslashreplace",
                    write_through=True,
                )
                setattr(sys, name, fresh)
                setattr(sys, f"__{name}__", fresh)

    def take(self) -> tuple[str | None, str | None]:
        """Return the start of each file (None if the file is empty), and empty both files."""
        stdout, stderr = self._stdout, self._stderr
        if os.lseek(stdout, 0, 2) == 0 == os.lseek(stderr, 0, 2):
            return None, None
        texts = read_output(stdout), read_output(stderr)
        os.ftruncate(stdout, 0)
        os.ftruncate(stderr, 0)
        return texts


class _Stream(io.TextIOWrapper):
    _of_executor = True
