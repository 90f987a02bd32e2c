"""What a client announces about a payload before uploading it."""

import io
import zlib
from pathlib import Path
from typing import Any, cast

import pytest

from cloudpar._client.connection import Connection
from cloudpar._client.uploads import upload
from cloudpar._serialization.blob import Blob
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, PrepareUploadsReply, Upload
from cloudpar_protocol.parts import NOT_CHECKED
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.transport.payload_folder import PayloadFolder

BODY = b"payload"
CRC32 = zlib.crc32(BODY)


class Announced:
    """Stands in for a connection; the master's link has this URL."""

    def __init__(self, folder: PayloadFolder | None, url: str) -> None:
        self.folder = folder
        self.uploads: list[Upload] = []
        self.links: list[Link] = []
        self._url = url

    def call(self, _: object, request: PrepareUploads) -> PrepareUploadsReply:
        self.uploads += request.uploads
        return PrepareUploadsReply(uploads=[PreparedUpload(key="k", link=Link("PUT", self._url))])

    def put(self, link: Link, body: list[memoryview]) -> str:
        assert b"".join(body) == BODY
        self.links.append(link)
        return ""


@pytest.mark.parametrize(
    ("own", "kind", "url", "announced"),
    [
        (False, "data", "/k", [CRC32]),
        (False, "code", "/k", [CRC32]),
        (True, "code", "file:///k", [NOT_CHECKED]),
        (True, "data", "file:///k", [NOT_CHECKED]),
        (True, "data", "/k", [NOT_CHECKED, CRC32]),
    ],
    ids=["data by HTTP", "code by HTTP", "file of code", "file of data", "earlier master"],
)
def test_only_what_is_written_to_the_pools_own_folder_has_no_checksum(
    tmp_path: Path, own: bool, kind: Any, url: str, announced: list[int]
) -> None:
    connection = Announced(PayloadFolder(str(tmp_path)) if own else None, url)
    upload(cast("Connection", connection), kind, Blob(io.BytesIO(BODY), len(BODY)))
    assert [each.crc32 for each in connection.uploads] == announced
    assert [link.url for link in connection.links] == [url]
