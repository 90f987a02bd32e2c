"""Passes payloads as files between a pool, its master and its worker, all on the same machine.

The pool has started the master and the worker, so the three processes belong to one user. If a payload went through the
master by HTTP, it would be copied eight times; a file is written once and read once. A process that knows this folder
says so in a header of each call (`link_urls`), and gets links to files.
"""

import errno
import io
import mmap
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from cloudpar_protocol.errors import BadRequest, NotFound
from cloudpar_protocol.frames import SOCKET

SCHEME: Final = "file://"
UPLOAD: Final = ".upload-"
"""The start of an unfinished file's name. The id of the writing process follows."""
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The error numbers of the operating system which say that there is no room for a file."""
MAPPED_BYTES: Final = 256 * 1024
"""From this size on, in bytes, `PayloadFolder.view` maps ranges of payloads into memory instead of copying them."""


class Draft(io.BufferedRandom):
    """A payload that is written before its link is known.

    Closing a draft removes it, unless `publish` has given it a name.
    """

    def __init__(self, folder: Path) -> None:
        descriptor, self.path = tempfile.mkstemp(dir=folder, prefix=f"{UPLOAD}{os.getpid()}-")
        super().__init__(io.FileIO(descriptor, "r+b"))

    def close(self) -> None:
        """Close the file and remove its temporary name, even if its last bytes do not fit on the disk."""
        try:
            super().close()
        finally:
            Path(self.path).unlink(missing_ok=True)  # already gone if the pool has removed the whole folder


class PayloadFolder:
    """The payload folder of a pool's own master. Links to files outside of this folder are refused."""

    def __init__(self, path: str) -> None:
        self._path = Path(path).resolve()

    def __str__(self) -> str:
        return str(self._path)

    @property
    def socket(self) -> str:
        """The path of the socket for calls to the master (see `frames`)."""
        return str(self._path / SOCKET)

    @staticmethod
    def has(url: str) -> bool:
        """Whether a link leads to a file."""
        return url.startswith(SCHEME)

    def put(self, url: str, body: Iterable[bytes | memoryview]) -> None:
        """Write a payload, piece by piece, to a link's file. An existing file stays: no key is used for two payloads.

        Raises:
            BadRequest: The link leads out of the folder, or the folder belongs to another user.
            NotFound: The folder was removed.
            OSError: The file cannot be written, for example because the disk is full.
        """
        self._place(url)  # refuse the link before writing anything
        with self.draft() as file:
            for piece in body:
                file.write(piece)
            self.publish(url, file)

    def draft(self) -> Draft:
        """Start a payload whose link is not known yet; the caller closes it. Raises like `put`."""
        self.check()
        return Draft(self._path)

    def remove_drafts(self, pid: int) -> None:
        """Remove the drafts of a killed process."""
        for path in self._path.glob(f"{UPLOAD}{pid}-*"):
            path.unlink(missing_ok=True)

    def publish(self, url: str, draft: Draft) -> None:
        """Give a draft of this folder the name in a link. Raises like `put`."""
        path = self._place(url)
        draft.flush()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.link(draft.path, path)

    def get(self, url: str, start: int, end: int) -> bytearray:
        """Read bytes [start, end) of a payload; fewer if the payload is shorter.

        The memory is the caller's own, so that the arrays of a result can use it.

        Raises:
            BadRequest: The link leads out of the folder, or the folder belongs to another user.
            NotFound: The payload was deleted or never written, or the folder was removed.
            OSError: The file cannot be read.
        """
        try:
            with self._place(url).open("rb", buffering=0) as file:
                file.seek(start)
                return _read(file, end - start)
        except FileNotFoundError:
            raise _deleted() from None

    def view(self, url: str, start: int, end: int) -> memoryview:
        """Map bytes [start, end) of a payload into memory, or copy them if they are few. Raises like `get`.

        For a copy of a large payload, allocating memory takes longer than the copying itself. But a mapping keeps a
        file descriptor open while it is used, and a worker may hold the data of hundreds of small chunks.
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

    def open(self, url: str) -> io.FileIO:
        """Open a payload for reading. Raises like `get`."""
        try:
            return io.FileIO(self._place(url))
        except FileNotFoundError:
            raise _deleted() from None

    def _place(self, url: str) -> Path:
        path = Path(unquote(url.removeprefix(SCHEME))).resolve()
        if not path.is_relative_to(self._path):
            raise BadRequest("a link leads to a file outside the folder of this pool's own master: it is not followed")
        self.check()
        return path

    def check(self) -> None:
        """Refuse a folder that was removed or belongs to another user. Raises like `put`.

        A program that cleans temporary files may remove the folder. Then any user of this machine can create a folder
        of this name, and the client would unpickle that user's payloads. So this class never creates the folder.
        """
        try:
            owner = self._path.stat().st_uid
        except FileNotFoundError:
            raise NotFound(f"{self._path}, where this pool keeps its payloads, was removed: make a new pool") from None
        if owner != os.geteuid():
            raise BadRequest(f"{self._path}, where this pool keeps its payloads, belongs to another user now")


def _deleted() -> NotFound:
    return NotFound("this blob was deleted, or never uploaded")


def _read(file: io.FileIO, size: int) -> bytearray:
    data, position = bytearray(size), 0
    with memoryview(data) as view:
        while position < size and (count := file.readinto(view[position:])):  # a system call reads at most 2 GiB
            position += count
    del data[position:]
    return data
