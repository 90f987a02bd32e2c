"""What a client says of a payload before it uploads it."""

import io
import zlib
from pathlib import Path
from typing import Any, cast

import pytest

from cloudpar.connection import Connection
from cloudpar.packing import Blob
from cloudpar.uploads import upload
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, PrepareUploadsReply, Upload
from cloudpar_protocol.parts import NOT_CHECKED
from cloudpar_protocol.payload_folder import PayloadFolder

BODY = b"payload"


class Announced:
    """Stands in for a connection to a master that has each payload already."""

    def __init__(self, folder: PayloadFolder | None) -> None:
        self.folder = folder
        self.uploads: list[Upload] = []

    def call(self, _: object, request: PrepareUploads) -> PrepareUploadsReply:
        self.uploads += request.uploads
        return PrepareUploadsReply(uploads=[PreparedUpload(key="k")])


@pytest.mark.parametrize(
    ("own", "kind", "checked"), [(False, "data", True), (True, "code", True), (True, "data", False)]
)
def test_only_data_that_become_files_of_the_own_master_have_no_checksum(
    tmp_path: Path, own: bool, kind: Any, checked: bool
) -> None:
    connection = Announced(PayloadFolder(str(tmp_path)) if own else None)
    upload(cast("Connection", connection), kind, Blob(io.BytesIO(BODY), len(BODY)))
    assert [each.crc32 for each in connection.uploads] == [zlib.crc32(BODY) if checked else NOT_CHECKED]
