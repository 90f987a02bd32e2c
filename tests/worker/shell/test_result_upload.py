"""Uploads of large results to the blob store."""

import zlib
from collections.abc import Sequence
from typing import cast

import pytest

from cloudpar_protocol.limits import INLINE_RESULT_BYTES
from cloudpar_protocol.parts import NOT_CHECKED
from cloudpar_protocol.payloads import BlobRef, Link, TaskResult
from cloudpar_protocol.worker_messages import (
    PreparedResult,
    PrepareResult,
    PrepareResults,
    PrepareResultsReply,
    Publication,
)
from cloudpar_worker.shell.master_client import MasterClient
from cloudpar_worker.shell.result_upload import upload_large

LARGE = [b"a" * (INLINE_RESULT_BYTES + 1), b"b" * (INLINE_RESULT_BYTES + 2)]


class Uploads:
    """Stands in for the client, and records uploads."""

    def __init__(self, *, own_folder: bool, url: str) -> None:
        self._url = url
        self.own_folder = own_folder
        self.announced: list[PrepareResult] = []
        self.bodies: list[list[bytes]] = []

    def call(self, _: object, request: PrepareResults) -> PrepareResultsReply:
        self.announced += request.results
        return PrepareResultsReply(
            results=[PreparedResult(key="k", link=Link("PUT", self._url)) for _ in request.results]
        )

    def put(self, _link: Link, body: Sequence[bytes], _report: object) -> str:
        self.bodies.append(list(body))
        return ""


@pytest.mark.parametrize(
    ("own_folder", "url"), [(False, "/k"), (True, "file:///k"), (True, "/k")], ids=["http", "file", "earlier master"]
)
def test_large_results_of_a_publication_are_one_blob(*, own_folder: bool, url: str) -> None:
    uploads, to_file = Uploads(own_folder=own_folder, url=url), url.startswith("file:")
    results = [
        TaskResult(0, "ok", 1, data=LARGE[0]),
        TaskResult(1, "ok", 1, data=b"small"),
        TaskResult(2, "ok", 1, data=LARGE[1]),
    ]
    publication = Publication(
        package_id="p", lease_id="l", receipt="r", start=0, end=3, generation=0, seq=0, results=results
    )
    (made,) = upload_large(cast("MasterClient", uploads), [publication])
    sizes = [len(each) for each in LARGE]
    assert [each.blob for each in made.results] == [BlobRef("k", sizes[0], 0), None, BlobRef("k", sizes[1], sizes[0])]
    assert {each.size for each in uploads.announced} == {sum(sizes)}
    assert uploads.announced[-1].crc32 == (NOT_CHECKED if to_file else zlib.crc32(b"".join(LARGE)))
    assert uploads.bodies == [LARGE if to_file else [b"".join(LARGE)]]
