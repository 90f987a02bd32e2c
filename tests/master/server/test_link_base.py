"""Links lead to the address by which their caller reached the master."""

import zlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import PrepareUploads, PrepareUploadsReply, Upload
from cloudpar_protocol.link_urls import FILES, HEADER, RELATIVE, resolve

from .served import CONNECTION, Served, decoded

BODY = b"payload"
DATA = Upload(kind="data", size=len(BODY), crc32=zlib.crc32(BODY))


def link_for(served: Served, headers: dict[str, str], upload: Upload = DATA) -> str:
    authorized = {"authorization": "Bearer user", "content-type": codec.MSGPACK, **headers}
    answer = served.send(
        "POST", routes.PREPARE_UPLOADS.path, codec.encode(PrepareUploads(uploads=[upload])), authorized
    )
    (prepared,) = decoded(answer, PrepareUploadsReply).uploads
    assert prepared.link is not None
    return prepared.link.url


def test_a_caller_that_resolves_relative_links_gets_one_that_works(served: Served) -> None:
    url = link_for(served, {HEADER.lower(): RELATIVE, "host": "lab.example"})
    assert url.startswith("/blobs/")
    assert resolve(url, "https://lab.example/pool") == f"https://lab.example/pool{url}"
    assert served.send("PUT", url, BODY).status == 200


@pytest.mark.parametrize("host", ["127.0.0.1:19999", "lab.example", "[::1]:8642"])
def test_an_older_caller_gets_an_absolute_link_to_its_own_host(served: Served, host: str) -> None:
    assert link_for(served, {"host": host}).startswith(f"http://{host}/blobs/")


@pytest.mark.parametrize("host", ["", "a/b", "user@host", "host:port", "a b", "[x]"])
def test_with_a_malformed_host_links_lead_to_the_master_itself(served: Served, host: str) -> None:
    assert link_for(served, {"host": host}).startswith(f"{CONNECTION.endpoint}/blobs/")


CODE = replace(DATA, kind="code", hash="0" * 64)


def test_a_caller_that_wants_links_to_files_gets_relative_ones_from_a_master_that_no_pool_has_started(
    served: Served,
) -> None:
    for upload in (DATA, CODE):
        url = link_for(served, {HEADER.lower(): FILES, "host": "lab.example"}, upload)
        assert url.startswith("/blobs/")
        assert served.send("PUT", url, BODY).status == 200


def test_a_caller_that_has_the_same_files_gets_links_to_them_from_the_master_of_its_pool(tmp_path: Path) -> None:
    served = Served(tmp_path / "data", of_pool=True)
    for upload, place in ((DATA, "/blobs/data/"), (CODE, "/blobs/code/")):
        url = link_for(served, {HEADER.lower(): FILES, "host": "lab.example"}, upload)
        assert url.startswith("file:///")
        assert place in url
        assert url.endswith(".blob")
    served.close()
