"""Payloads as files: between a pool on one machine and the master and the worker that the pool has started.

These three processes belong to one user. Through the master by HTTP, a payload would be copied eight times; a file is
written once and read once. A side that has a folder for it requests such links by a header of each call (`link_urls`).
"""

import errno
import io
import mmap
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote

from .errors import BadRequest, NotFound

SCHEME: Final = "file://"
UPLOAD: Final = ".upload-"
"""How the name of a file starts until it is whole. The id of the process that writes it follows."""
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says when there is no room for a file, or for more of it."""
MAPPED_BYTES: Final = 256 * 1024
"""Parts of payloads from this size on are mapped into memory, not copied."""


class Draft(io.BufferedRandom):
    """A payload that is written before it has a link. Closing removes its own name, so only `publish` keeps it."""

    def __init__(self, folder: Path) -> None:
        descriptor, self.path = tempfile.mkstemp(dir=folder, prefix=f"{UPLOAD}{os.getpid()}-")
        super().__init__(io.FileIO(descriptor, "r+b"))

    def close(self) -> None:
        """Close the file, also when its last bytes do not fit on the disk."""
        try:
            super().close()
        finally:
            Path(self.path).unlink(missing_ok=True)  # the pool may have removed the whole folder


class PayloadFolder:
    """The folder of a pool's own master. Links that lead to other files are refused."""

    def __init__(self, path: str) -> None:
        self._path = Path(path).resolve()

    def __str__(self) -> str:
        return str(self._path)

    @staticmethod
    def has(url: str) -> bool:
        """Whether a link leads to a file."""
        return url.startswith(SCHEME)

    def put(self, url: str, body: Iterable[bytes | memoryview]) -> None:
        """Write a payload, piece by piece, where a link says. No key is used for two payloads, so what is there stays.

        Raises:
            BadRequest: The link leads out of the folder.
            NotFound: The folder was removed.
            OSError: It cannot be written, such as on a full disk.
        """
        self._place(url)  # before anything is written
        with self.draft() as file:
            for piece in body:
                file.write(piece)
            self.publish(url, file)

    def draft(self) -> Draft:
        """Start a payload whose link is not known yet. Its owner closes it. Raises as `put` does."""
        self._check()
        return Draft(self._path)

    def remove_drafts(self, pid: int) -> None:
        """Remove the drafts of a process that was killed."""
        for path in self._path.glob(f"{UPLOAD}{pid}-*"):
            path.unlink(missing_ok=True)

    def publish(self, url: str, draft: Draft) -> None:
        """Give a draft of this folder the name that a link says; raises as `put` does."""
        path = self._place(url)
        draft.flush()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.link(draft.path, path)

    def get(self, url: str, start: int, end: int) -> bytes:
        """Read bytes [start, end) of a payload; fewer if it is shorter.

        Raises:
            BadRequest: The link leads out of the folder.
            NotFound: The payload was deleted, or the folder removed.
        """
        try:
            with self._place(url).open("rb", buffering=0) as file:
                file.seek(start)
                return _read(file, end - start)
        except FileNotFoundError:
            raise _deleted() from None

    def view(self, url: str, start: int, end: int) -> memoryview:
        """Map bytes [start, end) of a payload into memory, or copy a few; raises as `get` does.

        Memory for a copy of a large payload costs more time than the copy itself. But what is mapped keeps a file
        descriptor open as long as it is used, and a worker may hold the data of hundreds of small chunks.
        """
        if end - start < MAPPED_BYTES:
            return memoryview(self.get(url, start, end))
        try:
            with self._place(url).open("rb", buffering=0) as file:
                end = min(end, os.fstat(file.fileno()).st_size)
                if start >= end:
                    return memoryview(b"")
                first = start - start % mmap.ALLOCATIONGRANULARITY
                mapped = mmap.mmap(file.fileno(), end - first, access=mmap.ACCESS_READ, offset=first)
                return memoryview(mapped)[start - first :]
        except FileNotFoundError:
            raise _deleted() from None

    def _place(self, url: str) -> Path:
        path = Path(unquote(url.removeprefix(SCHEME))).resolve()
        if not path.is_relative_to(self._path):
            raise BadRequest("a link leads to a file outside the folder of this pool's own master: it is not followed")
        self._check()
        return path

    def _check(self) -> None:
        """Refuse a folder that is not the master's any more.

        A cleaner of temporary files may remove it. Then any user of this machine can make one of this name, whose
        payloads the client would unpickle. So it is never made here either.
        """
        try:
            owner = self._path.stat().st_uid
        except FileNotFoundError:
            raise NotFound(f"{self._path}, where this pool keeps its payloads, was removed: make a new pool") from None
        if owner != os.geteuid():
            raise BadRequest(f"{self._path}, where this pool keeps its payloads, belongs to another user now")


def _deleted() -> NotFound:
    return NotFound("this blob was deleted, or never uploaded")


def _read(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):  # one system call reads at most 2 GiB
        data += more
    return data
