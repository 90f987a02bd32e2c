"""Payloads as files: between a pool on one machine and the master and the worker that the pool has started.

These three processes belong to one user. Through the master by HTTP, a payload would be copied eight times; a file is
written once and read once. Whoever has a folder for it asks for such links by a header of each call (`link_urls`).
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote

from .errors import BadRequest, NotFound

SCHEME: Final = "file://"
UPLOAD: Final = ".upload-"
"""What the name of a file begins with until it is whole."""


class PayloadFolder:
    """The folder of a pool's own master. Links that lead to other files are refused."""

    def __init__(self, path: str) -> None:
        self._path = Path(path).resolve()

    @staticmethod
    def has(url: str) -> bool:
        """Whether a link leads to a file."""
        return url.startswith(SCHEME)

    def put(self, url: str, body: bytes | memoryview | IO[bytes]) -> None:
        """Write a payload where a link says. No key is used for two payloads, so what is there stays.

        Raises:
            BadRequest: The link leads out of the folder.
            NotFound: The folder was removed.
            OSError: It cannot be written, such as on a full disk.
        """
        path = self._place(url)
        folder = path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=UPLOAD) as file:
            if isinstance(body, bytes | memoryview):
                file.write(body)
            else:
                body.seek(0)
                shutil.copyfileobj(body, file, 1 << 20)
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)

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
            raise NotFound("this blob was deleted, or never uploaded") from None

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


def _read(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):  # one system call reads at most 2 GiB
        data += more
    return data
