"""How payloads are passed to the HTTP client."""

import io
from pathlib import Path
from typing import Any

import pytest
from urllib3 import HTTPResponse

from cloudpar._client.links import Links
from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest, Unavailable
from cloudpar_protocol.parts import PIECE_BYTES
from cloudpar_protocol.payload_folder import PayloadFolder
from cloudpar_protocol.payloads import Link


class Requests:
    """Stands in for the client's connections."""

    def __init__(self) -> None:
        self.bodies: list[list[memoryview]] = []
        self.headers: list[dict[str, str]] = []

    def request(self, _: str, __: str, *, body: Any, headers: dict[str, str], timeout: Any) -> HTTPResponse:
        assert timeout.connect_timeout <= 10
        self.bodies.append(list(body))
        self.headers.append(headers)
        return HTTPResponse(status=200, headers={"etag": '"e"'})


def test_the_time_limit_is_for_each_piece_of_a_body() -> None:
    """The library limits one send to the time of one connect, but a large payload takes longer on a slow line."""
    links, requests = Links("http://master"), Requests()
    links._manager = requests  # type: ignore[assignment]
    body = memoryview(bytes(3 * PIECE_BYTES + 1))
    assert links.put(Link("PUT", "http://store/k", {"content-md5": "x"}), body, len(body), 30.0) == '"e"'
    assert [len(piece) for piece in requests.bodies[0]] == [PIECE_BYTES] * 3 + [1]
    assert requests.headers == [{"content-md5": "x", "Content-Length": str(len(body))}]


def test_a_master_that_refuses_an_upload_is_quoted_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    links, requests = Links("http://master"), Requests()
    links._manager = requests  # type: ignore[assignment]
    body = codec.encode_error(Unavailable("no room: free space on its disk", 5.0))
    answer = HTTPResponse(body, {"Content-Type": codec.MSGPACK, "Retry-After": "5"}, status=503)
    monkeypatch.setattr(requests, "request", lambda *_, **__: answer)
    with pytest.raises(Unavailable, match=r"refused: no room: free space on its disk$") as caught:
        links.put(Link("PUT", "/blobs/k"), memoryview(b"payload"), 7, 30.0)
    assert caught.value.retry_after_s == 5.0


def test_a_link_to_a_file_is_followed_only_in_the_folder_of_the_pools_own_master(tmp_path: Path) -> None:
    url = (tmp_path / "k").as_uri()
    own, other = Links("http://master", PayloadFolder(str(tmp_path))), Links("http://master")
    with pytest.raises(BadRequest, match="not this pool's own"):
        other.put(Link("PUT", url), memoryview(b"payload"), 7, 30.0)
    assert own.put(Link("PUT", url), memoryview(b"payload"), 7, 30.0) == ""
    assert own.get(Link("GET", url), 2, 5, 30.0) == b"ylo"
    with PayloadFolder(str(tmp_path)).draft() as draft:
        draft.write(b"written before")
        own.put(Link("PUT", url + "2"), draft, 14, 30.0)
        own.put(Link("PUT", url + "3"), io.BytesIO(b"from a file"), 11, 30.0)
    assert own.get(Link("GET", url + "2"), 0, 14, 30.0) == b"written before"
    assert own.get(Link("GET", url + "3"), 0, 11, 30.0) == b"from a file"
    with pytest.raises(BadRequest, match="not this pool's own"):
        other.get(Link("GET", url), 2, 5, 30.0)
    with pytest.raises(Unavailable, match="4 bytes brought 1"):
        own.get(Link("GET", url), 6, 10, 30.0)
