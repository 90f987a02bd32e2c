import hashlib
import hmac
import os
import shutil
import tempfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote, urlencode

from cloudpar_master.ports import Clock
from cloudpar_protocol.errors import BadRequest, Forbidden, IdempotencyConflict, NotFound, TooLarge
from cloudpar_protocol.limits import LINK_S
from cloudpar_protocol.payloads import Link

READ_BYTES = 1024 * 1024


class FileBlobStore:
    """Blobs as files, reached through links that this store signs and its server honours.

    A key is a path of names; each becomes a quoted folder or file name, so that no key leads out of the folder.
    """

    def __init__(self, folder: Path, endpoint: str, secret: bytes, clock: Clock) -> None:
        self._folder = folder
        self._endpoint = endpoint
        self._secret = secret
        self._clock = clock
        folder.mkdir(parents=True, exist_ok=True)

    # the port

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        """See the port."""
        return self._link("PUT", key, {"size": str(size), "crc32": str(crc32)})

    def get_link(self, key: str) -> Link:
        """See the port."""
        return self._link("GET", key, {})

    def exists(self, key: str) -> bool:
        """See the port."""
        try:
            os.utime(self._path(key))
        except FileNotFoundError:
            return False
        return True

    def delete(self, prefix: str) -> None:
        """See the port. A prefix is a whole blob, or ends with '/' and is a folder."""
        path = self._path(prefix.rstrip("/"))
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    # the other end of the links

    def check(self, method: str, key: str, query: dict[str, str]) -> None:
        """Whether a request is one that this store has signed.

        Raises:
            Forbidden: It is not, or not any more.
        """
        signed = {name: value for name, value in query.items() if name != "signature"}
        wanted = self._sign(method, key, signed)
        if not hmac.compare_digest(wanted, query.get("signature", "")):
            raise Forbidden("this link is not good for this object and method")
        if float(query["expires"]) < self._clock.now():
            raise Forbidden("this link has expired: ask for a new one")

    async def write(self, key: str, query: dict[str, str], body: AsyncIterator[bytes]) -> None:
        """Take an upload.

        Raises:
            BadRequest, TooLarge: It is not what the link was made for.
            IdempotencyConflict: Another blob is there already.
        """
        path, size, crc32 = self._path(key), 0, 0
        expected = int(query["size"])
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".upload-") as file:
            async for part in body:
                size += len(part)
                if size > expected:
                    raise TooLarge(f"more than the {expected} bytes that this link was made for")
                crc32 = zlib.crc32(part, crc32)
                file.write(part)
            if (size, crc32) != (expected, int(query["crc32"])):
                raise BadRequest(f"{size} bytes with CRC {crc32:08x} are not what this link was made for")
            file.flush()
            self._keep(Path(file.name), path, crc32)

    @staticmethod
    def _keep(written: Path, path: Path, crc32: int) -> None:
        try:
            os.link(written, path)
        except FileExistsError:
            if _crc32(path) != crc32:
                raise IdempotencyConflict("another blob is there already: it is never overwritten") from None

    def open(self, key: str) -> IO[bytes]:
        """The blob for reading.

        Raises:
            NotFound: It was deleted, or never uploaded.
        """
        try:
            return self._path(key).open("rb")
        except (FileNotFoundError, IsADirectoryError):
            raise NotFound("this blob was deleted, or never uploaded") from None

    def sweep(self, unused_s: float) -> None:
        """Remove blobs that were not used for so long: uploads whose package never came."""
        before = self._clock.now() - unused_s
        for path in self._folder.rglob("*"):
            if path.is_file() and path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def _link(self, method: str, key: str, query: dict[str, str]) -> Link:
        query = {**query, "expires": str(round(self._clock.now() + LINK_S))}
        query["signature"] = self._sign(method, key, query)
        url = f"{self._endpoint}/blobs/{quote(key)}?{urlencode(query)}"
        return Link(method="PUT" if method == "PUT" else "GET", url=url)

    def _sign(self, method: str, key: str, query: dict[str, str]) -> str:
        text = "\n".join([method, key, *(f"{name}={query[name]}" for name in sorted(query))])
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()

    def _path(self, key: str) -> Path:
        names = [quote(unquote(name), safe="").replace(".", "%2E") for name in key.split("/") if name]
        return self._folder.joinpath(*names)


def _crc32(path: Path) -> int:
    crc32 = 0
    with path.open("rb") as file:
        while part := file.read(READ_BYTES):
            crc32 = zlib.crc32(part, crc32)
    return crc32
