import asyncio
import errno
import hashlib
import hmac
import logging
import os
import shutil
import tempfile
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

from cloudpar_master.ports import BlobStore, Clock
from cloudpar_protocol.errors import BadRequest, Forbidden, IdempotencyConflict, NotFound, TooLarge, Unavailable
from cloudpar_protocol.limits import LINK_S
from cloudpar_protocol.link_urls import FILES
from cloudpar_protocol.payloads import Link

from .code_blobs import KEPT_BYTES, CodeBlobs
from .file_remover import FileRemover

READ_BYTES = 1024 * 1024
FILE = "file:"
"""The first characters of a link to a file."""
CODE, DATA = "code/", "data/"
"""The first characters of the keys of task code and of task data."""

RESERVE_BYTES = 256 * 1024**2
RESERVE_SHARE = 0.05
"""The store leaves this much of its disk free: RESERVE_BYTES, or RESERVE_SHARE of the disk if that is less. The master
needs this space for its database: without it, the master could not even record results and deletions."""

UNSTARTED_S = 86_400.0
"""If no package starts with uploaded task data within about this many seconds, the store removes the data. The client
is probably gone, and the data would count towards the bytes that its account may store."""

UPLOAD = ".upload-"
BLOB = ".blob"
"""The suffix of a blob's file, so that a blob and a folder may have the same name."""

WASTE = ".waste"
"""The folder for files that wait for their removal. No key is stored under this name, since dots in keys are quoted."""

FAILURES = 10
"""One sweep reports at most this many failures, and omits further failures."""

LARGEST_NAME_BYTES = 255 - len(BLOB)

log = logging.getLogger("cloudpar_master")

Turn = Callable[[], Awaitable[None]]
"""A function that waits until a transfer may go on, such as `FairShares.wait`. It is called before each part of the
transfer."""


async def _let_others_run() -> None:
    await asyncio.sleep(0)


class FileBlobStore(BlobStore):
    """Stores blobs as files.

    Clients and workers reach the files by links. This store signs the links, and the server answers the requests that
    use them.

    If a pool has started this master, the pool and its worker request links that name the files directly. Such links
    are not signed.

    A key consists of names, with slashes between them. The store quotes each name, and uses it as the name of a folder
    or a file. So no key leads out of the store's folder.

    Args:
        folder: Where the files are.
        base: Called for each link. Returns what comes before the path `/blobs` in the URL ("" for a relative link), or
            `FILES` for a link that names the file directly.
        secret: Signs links.
        clock: Tells the time, for the expiry of links and for the last use of each blob.
        code_in_use: Returns, for each package that may still hand out tasks, the key of its task code; None if this
            code is no blob.
        code_bytes: The largest total size, in bytes, of the task code that is kept; see KEPT_BYTES in code_blobs.py.
        kept_s: The seconds without use after which `sweep` removes a blob; the caller passes the same number to
            `sweep`.
        reserves: Whether a reserve of the disk stays free. A pool's own master has no reserve: the pool's client writes
            most files itself, and learns at once that the disk is full.

    Raises:
        OSError: The folder cannot be made.
    """

    takes_parts = False

    def __init__(
        self,
        folder: Path,
        base: Callable[[], str],
        secret: bytes,
        clock: Clock,
        *,
        code_in_use: Callable[[], Iterable[str | None]],
        code_bytes: int = KEPT_BYTES,
        kept_s: float = 0.0,
        reserves: bool = True,
    ) -> None:
        self._folder = folder
        self._base = base
        self._secret = secret
        self._clock = clock
        self._kept_s = kept_s
        self._reserves = reserves
        self._reserved_bytes = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._remover = FileRemover(folder / WASTE)
        for left_by_a_crash in folder.glob(f"{UPLOAD}*"):
            try:
                left_by_a_crash.unlink(missing_ok=True)
            except OSError as error:  # a master that does not start would be worse than a file that stays
                log.warning("what is left of an upload cannot be removed: %s", error)

        def needed() -> Iterator[Path | None]:
            return (None if key is None else self._path(key) for key in code_in_use())

        self._code = CodeBlobs(self._path(CODE).with_suffix(""), clock, needed, code_bytes)

    def started(self, code_key: str) -> None:
        """Record that a package with this task code is stored."""
        self._code.keep_promise(self._path(code_key))

    # the methods of the port

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        link = self._link("PUT", key, {"size": str(size), "crc32": str(crc32)})
        if key.startswith(CODE) and link.url.startswith(FILE):
            self._code.announce(self._path(key))
        return link

    def part_links(self, *_: object) -> None:
        """See the port.

        This store accepts no parts: on one machine parts save no time, and a lost upload costs little.
        """

    def get_link(self, key: str) -> Link:
        return self._link("GET", key, {})

    def exists(self, key: str, *, promise: bool = False) -> bool:
        now = self._clock.now()
        try:
            os.utime(self._path(key), (now, now))
        except FileNotFoundError:
            return False
        if key.startswith(CODE):
            self._code.note_use(self._path(key))
            if promise:
                self._code.promise(self._path(key))
        return True

    def abandon(self, prefix: str) -> None:
        self.delete(prefix)

    def delete(self, key: str) -> None:
        self._remover.remove(self._path(key).with_suffix("") if key.endswith("/") else self._path(key))

    def uploads(self, account_id: str) -> Iterator[tuple[str, int]]:
        for prefix in (f"{CODE}{account_id}/", f"{DATA}{account_id}/"):
            with suppress(FileNotFoundError), os.scandir(self._path(prefix).with_suffix("")) as files:
                for file in files:
                    with suppress(FileNotFoundError):  # it has just been removed
                        yield prefix + file.name.removesuffix(BLOB), file.stat().st_size

    def free_bytes(self) -> int | None:
        """See the port.

        The part of an upload that is still to come counts as used.
        """
        if not self._reserves:
            return None
        disk = shutil.disk_usage(self._folder)
        reserve = min(RESERVE_BYTES, int(RESERVE_SHARE * disk.total))
        return max(0, disk.free - reserve - self._reserved_bytes)

    # for the server, to which the links lead

    def has(self, key: str) -> bool:
        """Whether a blob exists. Unlike `exists`, this does not count as a use."""
        return self._path(key).exists()

    def check(self, method: str, key: str, query: dict[str, str]) -> None:
        """Check that this store has signed a request.

        Raises:
            Forbidden: This store has not signed this method, key and query, or the link has expired.
        """
        signed = {name: value for name, value in query.items() if name != "signature"}
        wanted, given = self._sign(method, key, signed), query.get("signature", "")
        if not hmac.compare_digest(wanted.encode(), given.encode()):
            raise Forbidden("this link is not good for this object and method")
        if float(query["expires"]) < self._clock.now():
            raise Forbidden("this link has expired: request a new one")

    async def write(
        self, key: str, query: dict[str, str], body: AsyncIterator[bytes], turn: Turn = _let_others_run
    ) -> None:
        """Store an upload. If the same blob is stored already, keep the stored blob. Await `turn` before each part.

        Raises:
            TooLarge: The upload has more bytes than the link was made for.
            BadRequest: The upload has fewer bytes than the link was made for, or a different CRC-32.
            IdempotencyConflict: Another blob is stored under the key.
            Unavailable: The stored blob was deleted while the same upload came again.
            OSError: The blob cannot be written, for example because the disk is full, or only its reserve is left.
            Exception: `body` has raised this error, for example because the client has hung up.
        """
        path, size = self._path(key), 0
        if path.exists():
            # Only check these bytes. If they were also written to a file, a client could use one link many times at
            # once, and so fill space that no limit of its account counts.
            async for _ in _checked(body, query, turn):
                pass
            await _compare(path, query, turn)
        else:
            with (
                self._reserving(int(query["size"])) as came,
                tempfile.NamedTemporaryFile(dir=self._folder, prefix=UPLOAD) as file,
            ):
                async for part in _checked(body, query, turn):
                    file.write(part)
                    came(len(part))
                file.flush()
                path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.link(file.name, path)
                    size = int(query["size"])
                except FileExistsError:
                    await _compare(path, query, turn)
        now = self._clock.now()
        if not key.startswith(DATA):
            os.utime(path, (now, now))
        elif size:
            # Write an earlier time of last use, so that a sweep removes the data after UNSTARTED_S. When a package
            # starts with the data, `exists` writes the current time.
            os.utime(path, (now, now - max(0.0, self._kept_s - UNSTARTED_S)))
        if key.startswith(CODE):
            self._code.promise(path)
            self._code.added(size)

    @contextmanager
    def _reserving(self, size: int) -> Iterator[Callable[[int], None]]:
        """Reserve space for an upload while it arrives. Otherwise many slow uploads could fill the disk together.

        Yields a function. The caller calls it with the size, in bytes, of each part that it has written.

        Raises:
            OSError: Not enough of the disk is free.
        """
        free_bytes = self.free_bytes()
        if free_bytes is not None and size > free_bytes:
            raise OSError(errno.ENOSPC, "what is left of its disk is kept for its own records")
        left = size
        self._reserved_bytes += size

        def came(part_bytes: int) -> None:
            nonlocal left
            left -= part_bytes
            self._reserved_bytes -= part_bytes

        try:
            yield came
        finally:
            self._reserved_bytes -= left

    def open(self, key: str) -> BufferedReader:
        """Open a blob for reading.

        Raises:
            NotFound: The blob was deleted, or never uploaded.
        """
        try:
            return self._path(key).open("rb")
        except FileNotFoundError:
            raise NotFound("this blob was deleted, or never uploaded") from None

    def trim(self) -> Iterator[None]:
        """Remove task code, if there is too much, in short steps, as `CodeBlobs.trim` does."""
        return self._code.trim()

    def sweep(self, unused_s: float) -> Iterator[None]:
        """Remove blobs that were not used for `unused_s`, such as uploads whose package never started.

        Yields after each file. The check of a file and its removal are in one step, so that no call of `exists` comes
        between them.

        Raises:
            ExceptionGroup: Some files could not be removed; all others were.
        """
        now = self._clock.now()
        # Take the earlier of the two clocks' times. Files that a client or a worker of this machine wrote have the time
        # of the machine's clock. If that clock was set back, the master's time would make these files look too old.
        before = min(now, self._clock.date(now)) - unused_s
        failures: list[OSError] = []
        for folder, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if name != WASTE]
            for name in names:
                path = Path(folder, name)
                try:
                    if path.stat().st_mtime < before:
                        path.unlink()
                except FileNotFoundError:
                    pass
                except OSError as error:  # a file that cannot be removed must not keep the sweep from the others
                    failures.append(error)
                yield
        if failures:
            raise ExceptionGroup("some blobs could not be removed", failures[:FAILURES])

    def _link(self, method: Literal["GET", "PUT"], key: str, query: dict[str, str]) -> Link:
        base = self._base()
        if base == FILES:
            return Link(method=method, url=self._path(key).as_uri())
        query = {**query, "expires": str(round(self._clock.now() + LINK_S))}
        query["signature"] = self._sign(method, key, query)
        return Link(method=method, url=f"{base}/blobs/{quote(key)}?{urlencode(query)}")

    def _sign(self, method: str, key: str, query: dict[str, str]) -> str:
        # The key is quoted, so that different requests have different texts: otherwise a key could contain a `?` and
        # the start of a query.
        text = f"{method} {quote(key)}?{urlencode(sorted(query.items()))}"
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()

    def _path(self, key: str) -> Path:
        return self._folder.joinpath(*map(_file_name, key.removesuffix("/").split("/"))).with_suffix(BLOB)


def _file_name(name: str) -> str:
    """Make a file name that is never empty, never too long, and contains no dot.

    Different names get different file names.

    A plus sign stands for an empty name, and a plus sign with a hash for a long name. No quoted name contains a plus
    sign.
    """
    quoted = quote(name, safe="").replace(".", "%2E")
    if len(quoted) > LARGEST_NAME_BYTES:
        return "+" + hashlib.sha256(quoted.encode()).hexdigest()
    return quoted or "+"


async def _checked(body: AsyncIterator[bytes], query: dict[str, str], turn: Turn) -> AsyncIterator[bytes]:
    """Yield the parts of an upload, and check that they are what its link was made for.

    Raises:
        TooLarge, BadRequest: See `FileBlobStore.write`.
    """
    size, crc32, expected = 0, 0, int(query["size"])
    async for part in body:
        await turn()
        size += len(part)
        if size > expected:
            raise TooLarge(f"more than the {expected} bytes that this link was made for")
        crc32 = zlib.crc32(part, crc32)
        yield part
    if (size, crc32) != (expected, int(query["crc32"])):
        raise BadRequest(f"{size} bytes with CRC {crc32:08x} are not what this link was made for")


async def _compare(path: Path, query: dict[str, str], turn: Turn) -> None:
    """Check that a stored blob is the one that a link was made for.

    Raises:
        IdempotencyConflict, Unavailable: See `FileBlobStore.write`.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise Unavailable("this blob was deleted while it was uploaded again: repeat the upload", 1.0) from None
    with file:
        if file.seek(0, os.SEEK_END) != int(query["size"]) or await _crc32(file, turn) != int(query["crc32"]):
            raise IdempotencyConflict("another blob is there already: it is never overwritten")


async def _crc32(file: BufferedReader, turn: Turn) -> int:
    crc32 = file.seek(0)
    while part := file.read(READ_BYTES):
        crc32 = zlib.crc32(part, crc32)
        await turn()
    return crc32
