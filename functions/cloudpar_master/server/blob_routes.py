"""The route to which the links of the blob store lead."""

import re
from collections.abc import AsyncIterator
from functools import partial
from io import BufferedReader
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from cloudpar_master.adapters.embedded.blob_store import FileBlobStore, Turn
from cloudpar_master.ports import PackageStore, Unreadable
from cloudpar_master.services.stored_bytes import StoredBytes
from cloudpar_protocol.errors import BadRequest, RequestError

from .connections import abort, admitted, sent
from .failure_log import FailureLog
from .fair_shares import STRANGERS, FairShares

BINARY = "application/octet-stream"

TRANSFERS: Final = "transfers"
"""The role under which the transfers of users take turns."""

WORKERS_TRANSFERS: Final = "workers' transfers"
"""The role under which the transfers of workers take turns. With a common role, a user's many transfers would delay a
worker's transfers for the same account. A worker has only a few threads for the transfers of all accounts, so the other
accounts would wait, too."""

WORKERS_LINKS: Final = {("PUT", "results"), ("GET", "code"), ("GET", "data")}
"""The methods and kinds of payloads for which the master makes links for workers only. The opposite links are only for
users."""

PART_BYTES: Final = 64 * 1024
"""How many bytes of a download the server reads at a time, and keeps while the client does not read them."""


class BlobRoutes:
    """Serves uploads of whole blobs, and downloads of whole blobs or of byte ranges.

    Before each part of a transfer, the transfer waits until `shares` lets it go on. Otherwise many large transfers of
    one account would delay all other requests.

    Args:
        store: Stores the blobs.
        packages: Stores the packages, which say to which account a result belongs.
        shares: Chooses the next request or part of a transfer, so that each account gets its share.
        failures: Logs a disk that fails during a download.
        stored: Counts the uploads of each account, and refuses an upload that would exceed a limit; None: no upload is
            refused.
    """

    def __init__(
        self,
        store: FileBlobStore,
        packages: PackageStore,
        shares: FairShares,
        failures: FailureLog,
        stored: StoredBytes | None = None,
    ) -> None:
        self._store = store
        self._packages = packages
        self._shares = shares
        self._failures = failures
        self._stored = stored

    async def serve(self, key: str, request: Request) -> Response:
        """Serve GET or PUT /blobs/{key}. A HEAD is refused, since no link allows it.

        Raises like `check`, `write` and `open` of the store, like `StoredBytes.arriving` and like `parse_range`.
        """
        query = dict(request.query_params)
        turn: Turn = partial(self._shares.wait, STRANGERS)
        try:
            self._store.check(request.method, key, query)
            account = _owner(self._packages, key)
            if (request.method, key.partition("/")[0]) in WORKERS_LINKS:
                # The connection counts for no account. Otherwise an account could use up its own connections on
                # purpose: the worker would repeat this transfer, and could not serve the other accounts meanwhile.
                turn = partial(self._shares.wait, WORKERS_TRANSFERS, account)
                admitted(request, by_link=True)
            else:
                turn = partial(self._shares.wait, TRANSFERS, account)
                admitted(request, account, by_link=True)
            if request.method == "PUT":
                await self._write(key, query, request, turn)
                return Response()
            file = self._store.open(key)
        except (RequestError, OSError):
            await turn()
            raise
        try:
            return self._read(file, request, turn)
        except BaseException:
            file.close()
            raise

    async def _write(self, key: str, query: dict[str, str], request: Request, turn: Turn) -> None:
        # A client repeats an upload whose answer was lost. The repeated upload adds no bytes, so no limit of the
        # account applies.
        if self._stored is None or self._store.has(key):
            await self._store.write(key, query, request.stream(), turn)
            return
        for _ in self._stored.renew(_owner(self._packages, key)):
            await turn()
        with self._stored.arriving(key, int(query["size"])):
            await self._store.write(key, query, request.stream(), turn)

    def _read(self, file: BufferedReader, request: Request, turn: Turn) -> Response:
        wanted = request.headers.get("range")
        size = file.seek(0, 2)
        start, end = (0, size) if wanted is None else parse_range(wanted, size)
        headers = {"Content-Length": str(end - start), "Accept-Ranges": "bytes"}
        if wanted is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        file.seek(start)
        file.peek()  # a broken disk mostly fails here, while the answer can still say so
        status = 200 if wanted is None else 206
        return StreamingResponse(self._parts(file, end - start, request, turn), status, headers, BINARY)

    async def _parts(self, file: BufferedReader, left: int, request: Request, turn: Turn) -> AsyncIterator[bytes]:
        with file:
            while left > 0:
                # Wait before the next part is read: otherwise the memory holds two parts for a client that does not
                # read them.
                await sent(request)
                await turn()
                try:
                    part = file.read(min(PART_BYTES, left))
                except OSError as error:
                    self._failures.note(error, "a download failed")
                    abort(request)  # the client repeats the request, and then gets the reason
                    return
                if not part:
                    break
                left -= len(part)
                yield part


def _owner(packages: PackageStore, key: str) -> str:
    """Return the id of the account whose payload has this key.

    The id is "-" if the account is not known, for example because the package was deleted.
    """
    kind, owner, *_ = [*key.split("/"), ""]
    if kind == "results":
        try:
            spec = packages.spec(owner)
        except Unreadable:
            spec = None
        owner = spec.account_id if spec else ""
    return owner or "-"  # not "", which stands for callers without a limit


def parse_range(header: str, size: int) -> tuple[int, int]:
    """Return start and end of the byte range [start, end) that a Range header names, in a blob of `size` bytes.

    Raises:
        BadRequest: The header does not have the form of a single range. 'bytes=2-5' has this form.
        HTTPException: The blob has no byte of this range (status 416).

    >>> parse_range("bytes=2-5", 10), parse_range("bytes=8-", 10), parse_range("bytes=-3", 10)
    ((2, 6), (8, 10), (7, 10))
    """
    match = re.fullmatch(r"bytes=(?=.*[0-9])([0-9]{0,18})-([0-9]{0,18})", header.strip())
    if match is None:
        raise BadRequest(f"the range {header!r} is not understood: send one range, as in 'bytes=0-99'")
    first, last = match.groups()
    if first:
        start, end = int(first), min(int(last) + 1, size) if last else size
    else:
        start, end = max(0, size - int(last)), size
    if start >= end:
        text = f"the range {header!r} is not within the {size} bytes there are"
        raise HTTPException(416, text, {"Content-Range": f"bytes */{size}"})
    return start, end
