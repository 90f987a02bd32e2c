"""The other end of presigned links."""

import re
from collections.abc import AsyncIterator
from typing import IO

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from cloudpar_master.adapters.embedded.blob_store import READ_BYTES, FileBlobStore
from cloudpar_protocol.errors import BadRequest

BINARY = "application/octet-stream"


class BlobRoutes:
    """Uploads and downloads, whole or in byte ranges."""

    def __init__(self, store: FileBlobStore) -> None:
        self._store = store

    async def serve(self, request: Request) -> Response:
        """GET or PUT /blobs/{key}."""
        key, query = request.path_params["key"], dict(request.query_params)
        method = "GET" if request.method == "HEAD" else request.method
        self._store.check(method, key, query)
        if method == "PUT":
            await self._store.write(key, query, request.stream())
            return Response()
        return self._read(request, self._store.open(key))

    def _read(self, request: Request, file: IO[bytes]) -> Response:
        size = file.seek(0, 2)
        wanted = request.headers.get("range")
        start, end = (0, size) if wanted is None else parse_range(wanted, size)
        headers = {"Content-Length": str(end - start), "Accept-Ranges": "bytes"}
        if wanted is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        status = 200 if wanted is None else 206
        return StreamingResponse(_parts(file, start, end), status, headers, BINARY)


def parse_range(header: str, size: int) -> tuple[int, int]:
    """The bytes [start, end) of one 'bytes=a-b' range.

    Raises:
        BadRequest: It is none, or outside.

    >>> parse_range("bytes=2-5", 10), parse_range("bytes=8-", 10), parse_range("bytes=-3", 10)
    ((2, 6), (8, 10), (7, 10))
    """
    match = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", header.strip())
    first, last = match.groups() if match else ("", "")
    if first:
        start, end = int(first), min(int(last) + 1, size) if last else size
    else:
        start, end = max(0, size - int(last or 0)), size
    if start >= end:
        raise BadRequest(f"the range {header!r} is not within the {size} bytes there are")
    return start, end


async def _parts(file: IO[bytes], start: int, end: int) -> AsyncIterator[bytes]:
    with file:
        file.seek(start)
        while start < end and (part := file.read(min(READ_BYTES, end - start))):
            start += len(part)
            yield part
