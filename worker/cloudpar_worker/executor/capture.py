"""Captures what a task writes to standard output and error, through Python and through the file descriptors.

Descriptors 1 and 2 of an executor are two anonymous files that the agent also holds, so the output of a task that
crashed is still there. Checking them costs two system calls for each task; they are read only if something was written.
"""

import fcntl
import io
import os
import sys

from cloudpar_protocol.limits import OUTPUT_BYTES

from .anonymous_file import anonymous_file

_NOTE_BYTES = 80
"""How many bytes the note about cut output takes at most."""


def open_output(folder: str | None = None) -> int:
    """The descriptor of a new anonymous file; every write appends."""
    descriptor = anonymous_file("output", folder)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    return descriptor


def written_bytes(descriptor: int) -> int:
    """The size of such a file."""
    return os.lseek(descriptor, 0, os.SEEK_END)


def held_bytes(descriptor: int) -> int:
    """The size of such a file, or the memory that it takes if that is more, since it may have memory beyond its end."""
    status = os.fstat(descriptor)
    return max(status.st_size, 512 * status.st_blocks)


def read_output(descriptor: int) -> str | None:
    """The start of such a file: at most OUTPUT_BYTES of UTF-8, including a note about what was cut; None if empty."""
    size = written_bytes(descriptor)
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
    """The two output files of an executor."""

    def __init__(self, stdout: int, stderr: int) -> None:
        # Task code may close or replace descriptors 1 and 2, so checks use descriptors of their own.
        self._stdout, self._stderr = os.dup(stdout), os.dup(stderr)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        self.restore()

    @property
    def descriptors(self) -> tuple[int, int]:
        """The descriptors that the checks use."""
        return self._stdout, self._stderr

    @staticmethod
    def restore() -> None:
        """Make sys.stdout and sys.stderr write through to the descriptors, even if the last task replaced them."""
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
        """The output since the last call; None for a file to which nothing was written."""
        stdout, stderr = self._stdout, self._stderr
        if os.lseek(stdout, 0, 2) == 0 == os.lseek(stderr, 0, 2):
            return None, None
        texts = read_output(stdout), read_output(stderr)
        os.ftruncate(stdout, 0)
        os.ftruncate(stderr, 0)
        return texts


class _Stream(io.TextIOWrapper):
    _of_executor = True
