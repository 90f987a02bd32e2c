"""Payload transfers by links, as blob stores and S3 answer them: one attempt each."""

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest, RequestError, Unavailable
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.transport.answer import Answer
from cloudpar_protocol.transport.channel import Channel
from cloudpar_protocol.transport.connection_pool import PIECE_BYTES, ConnectionPool
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.transport.socket_pool import Timeouts

LONG = Timeouts(30.0, 30.0)
PUT, GET, POST = (Link(method, "http://store/k?s=1", {"x": method}) for method in ("PUT", "GET", "POST"))


class Store:
    """Answers each request as the test wants, and records the requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer = Answer(200, b"")
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.pieces: list[int] = []
        monkeypatch.setattr(ConnectionPool, "request", self.ask)

    def ask(self, method: str, target: str, body: Iterable[bytes], _: Timeouts, *, headers: Any) -> Answer:
        self.pieces = [len(piece) for piece in body]
        self.requests.append((method, target, dict(headers)))
        return self.answer


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


@pytest.fixture
def channel() -> Channel:
    return Channel("http://master", "token")


ASK: dict[str, Callable[[Channel], object]] = {
    "put": lambda channel: channel.put(PUT, [b"payload"], LONG),
    "complete": lambda channel: channel.complete(POST, b"<parts/>", LONG),
    "get": lambda channel: channel.get(GET, 1, 3, LONG),
}
WRITTEN = b"<Error><Code>ConditionalRequestConflict</Code></Error>"


@pytest.mark.parametrize(
    ("ask", "answer", "error"),
    [
        ("put", Answer(200, b""), None),
        ("put", Answer(204, b""), None),
        ("put", Answer(412, b"<Error/>"), None),  # the first attempt came through, and only its answer was lost
        ("put", Answer(409, WRITTEN), Unavailable),  # the first attempt is under way
        ("put", Answer(409, b"<Error/>"), RequestError),
        ("put", Answer(403, b"expired"), RequestError),
        ("put", Answer(307, b""), RequestError),
        ("put", Answer(408, b""), Unavailable),
        ("put", Answer(429, b""), Unavailable),
        ("put", Answer(503, b""), Unavailable),
        ("complete", Answer(200, b"<CompleteMultipartUploadResult>"), None),
        ("complete", Answer(412, b""), None),
        ("complete", Answer(404, b""), RequestError),
        ("complete", Answer(200, b"<Error><Code>PreconditionFailed</Code></Error>"), None),
        ("complete", Answer(200, b"<Error><Code>InternalError</Code></Error>"), Unavailable),
        ("complete", Answer(200, WRITTEN), Unavailable),
        ("complete", Answer(200, b"<Error><Code>InvalidPart</Code></Error>"), RequestError),
        ("get", Answer(206, b"ay"), None),
        ("get", Answer(404, b""), RequestError),
        ("get", Answer(412, b""), RequestError),
        ("get", Answer(500, b""), Unavailable),
    ],
)
def test_what_an_answer_of_a_store_means(
    store: Store, channel: Channel, ask: str, answer: Answer, error: type | None
) -> None:
    store.answer = answer
    if error is None:
        ASK[ask](channel)
        return
    with pytest.raises(RequestError, match="HTTP status") as caught:
        ASK[ask](channel)
    assert type(caught.value) is error


def test_a_payload_is_sent_with_the_headers_of_its_link_and_its_length(store: Store, channel: Channel) -> None:
    store.answer = Answer(200, b"", {b"etag": b'"e"'})
    body = bytes(3 * PIECE_BYTES + 1)
    assert channel.put(PUT, [body[:9], memoryview(body)[9:]], LONG) == '"e"'
    assert channel.put(PUT, io.BytesIO(body), LONG) == '"e"'
    assert store.pieces == [PIECE_BYTES] * 3 + [1]
    sent = {"Accept-Encoding": "identity", "x": "PUT", "Content-Length": str(len(body))}
    assert store.requests == [("PUT", "/k?s=1", sent)] * 2


@pytest.mark.parametrize(("status", "body"), [(206, b"ay"), (200, b"payload")])
def test_a_store_may_ignore_the_range_of_a_download(store: Store, channel: Channel, status: int, body: bytes) -> None:
    store.answer = Answer(status, body)
    assert channel.get(GET, 1, 3, LONG) == bytes(channel.view(GET, 1, 3, LONG)) == b"ay"
    assert store.requests[0][2]["Range"] == "bytes=1-2"


def test_a_master_that_refuses_an_upload_is_quoted_in_its_words(store: Store, channel: Channel) -> None:
    body = codec.encode_error(Unavailable("no room: free space on its disk", 5.0))
    store.answer = Answer(503, body, {b"content-type": codec.MSGPACK.encode(), b"retry-after": b"5"})
    with pytest.raises(Unavailable, match=r"^no room: free space on its disk$") as caught:
        ASK["put"](channel)
    assert caught.value.retry_after_s == 5.0


def test_a_relative_link_follows_the_masters_endpoint(store: Store) -> None:
    channel = Channel("http://store/lab/", "token")
    link = Link("PUT", "/blobs/a b\N{LATIN SMALL LETTER E WITH ACUTE}?s=1")
    channel.put(link, [b"payload"], LONG)
    assert channel.address(link) == "http://store"
    assert store.requests[0][:2] == ("PUT", "/lab/blobs/a%20b%C3%A9?s=1")


@pytest.mark.parametrize("url", ["ftp://store/k", "http:///k", "http://store:x/k"])
def test_a_link_that_leads_to_no_store_is_refused(channel: Channel, url: str) -> None:
    with pytest.raises(BadRequest, match=r"the master links to .*no blob store is there"):
        channel.put(Link("PUT", url), [b"payload"], LONG)


def test_no_request_is_made_after_close(channel: Channel) -> None:
    channel.close()
    with pytest.raises(ConnectionAbortedError):
        ASK["put"](channel)


def test_a_link_to_a_file_is_followed_only_in_the_folder_of_the_pools_own_master(tmp_path: Path) -> None:
    link = Link("PUT", (tmp_path / "k").as_uri())
    own, other = Channel("http://master", "token", PayloadFolder(str(tmp_path))), Channel("http://master", "token")
    with pytest.raises(BadRequest, match="not this pool's own"):
        other.put(link, [b""], LONG)
    with pytest.raises(BadRequest, match="not this pool's own"):
        other.get(link, 2, 5, LONG)
    with pytest.raises(BadRequest, match="outside the folder"):
        own.get(Link("GET", "file:///etc/hostname"), 0, 1, LONG)
    assert own.put(link, [b"pay", b"load"], LONG) == ""
    assert own.get(link, 2, 5, LONG) == bytes(own.view(link, 2, 5, LONG)) == b"ylo"
    assert own.get(link, 6, 10, LONG) == b"d"


def test_a_file_is_copied_to_a_link_and_a_draft_is_renamed(tmp_path: Path) -> None:
    folder = PayloadFolder(str(tmp_path))
    channel, links = (
        Channel("http://master", "token", folder),
        [Link("PUT", (tmp_path / name).as_uri()) for name in "ab"],
    )
    with folder.draft() as draft:
        draft.write(b"written before")
        channel.put(links[0], draft, LONG)
        assert (tmp_path / "a").samefile(draft.path)
    channel.put(links[1], io.BytesIO(b"from a file"), LONG)
    assert channel.get(links[0], 0, 14, LONG) == b"written before"
    assert channel.get(links[1], 0, 11, LONG) == b"from a file"
