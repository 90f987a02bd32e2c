"""The SDK and workers upload large payloads to S3, and are interrupted at critical moments."""

import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar._client.uploads import upload
from cloudpar._serialization.blob import Blob
from cloudpar_master.services.upload_links import UploadLinks
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, PrepareUploadsReply
from cloudpar_protocol.limits import LINK_S
from cloudpar_protocol.payloads import BlobRef, Link, TaskResult
from cloudpar_protocol.transport.socket_pool import Timeouts
from cloudpar_protocol.worker_messages import PreparedResult, PrepareResults, PrepareResultsReply, Publication
from cloudpar_worker.shell.master_client import MasterClient
from cloudpar_worker.shell.reach import Reach
from cloudpar_worker.shell.result_upload import upload_large
from support.clock import SetClock
from support.stores import Stores

from .differences import S3

BODY = os.urandom(11_000_000)
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def stores(tmp_path: Path, clock: SetClock) -> Iterator[Stores]:
    with S3(tmp_path, clock) as stores:
        yield stores


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the part size to S3's minimum, so that a test can afford several parts."""
    monkeypatch.setattr("cloudpar_protocol.parts.WHOLE_BYTES", 6_000_000)
    for module in ("cloudpar_protocol.parts", "cloudpar_master.services.upload_links"):
        monkeypatch.setattr(f"{module}.PART_BYTES", 5 * 1024**2)


class Client(Connection):
    """The SDK's connection to a store, and to a master in this process."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(NOWHERE, "token", RetryPolicy(30.0, met=True))
        self.stores = stores
        self.asked: list[str] = []
        self.prepared: list[PrepareUploads] = []
        self.lost: Callable[[Link], bool] = lambda _: False
        """Whether the answer to a request by such a link is lost."""
        once = self._channel._ask

        def ask(link: Link, *rest: Any) -> Any:
            answer = once(link, *rest)
            self.asked.append(f"{'part ' if 'partNumber' in link.url else ''}{link.method} {answer.status}")
            if self.lost(link):
                raise ConnectionResetError
            return answer

        self._channel._ask = ask  # type: ignore[method-assign,assignment]

    def call(self, _: Any, message: Any, **__: Any) -> Any:  # type: ignore[override]
        self.prepared.append(message)
        (wanted,) = message.uploads
        key = wanted.key or f"data/a/{len(self.prepared)}"
        link, parts = UploadLinks(self.stores.blobs).make(key, wanted)
        return PrepareUploadsReply(uploads=[PreparedUpload(key=key, link=link, parts=parts)])

    def send(self, body: bytes = BODY) -> BlobRef:
        return upload(self, "data", Blob(io.BytesIO(body), len(body)))


@pytest.fixture
def client(stores: Stores) -> Iterator[Client]:
    client = Client(stores)
    yield client
    client.close()


def stored(stores: Stores, key: str) -> bytes:
    return stores.transfer(stores.blobs.get_link(key)).body


PARTS = ["part PUT 200"] * 3


def test_a_large_payload_goes_in_parts(client: Client, stores: Stores) -> None:
    ref = client.send()
    assert (ref.key, ref.size, ref.offset) == ("data/a/1", len(BODY), 0)
    assert stored(stores, ref.key) == BODY
    assert client.asked == [*PARTS, "POST 200"]


def test_a_small_payload_goes_whole(client: Client, stores: Stores) -> None:
    ref = client.send(BODY[:6_000_000])
    assert stored(stores, ref.key) == BODY[:6_000_000]
    assert client.asked == ["PUT 200"]


def test_a_payload_may_come_from_a_file(client: Client, stores: Stores) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(BODY)
        ref = upload(client, "data", Blob(file, len(BODY)))
    assert stored(stores, ref.key) == BODY


def test_a_part_whose_answer_is_lost_is_sent_again(client: Client, stores: Stores) -> None:
    losses = [True]
    client.lost = lambda link: "partNumber=3" in link.url and bool(losses) and losses.pop()
    assert stored(stores, client.send().key) == BODY
    assert sorted(client.asked) == sorted(["part PUT 200", *PARTS, "POST 200"])


def test_a_lost_answer_to_the_last_step(client: Client, stores: Stores) -> None:
    """The store says that the upload is complete, that the object exists, or that it knows no such upload: success."""
    losses = [True]
    client.lost = lambda link: link.method == "POST" and bool(losses) and losses.pop()
    ref = client.send()
    assert stored(stores, ref.key) == BODY
    assert client.asked[:4] == [*PARTS, "POST 200"]


def test_an_upload_that_the_store_forgot_is_sent_whole(
    client: Client, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a last step whose answer was lost, or after the upload was given up: the client cannot know which."""
    refused: list[Link] = []

    def refuse(link: Link, *_: object) -> None:
        refused.append(link)
        client._channel.get(Link("GET", stores.blobs.get_link("nothing").url), 0, 1, Timeouts(30.0, 30.0))

    monkeypatch.setattr(client._channel, "complete", refuse)
    ref = client.send()
    assert ref.key == "data/a/1", "it goes where the parts were to go"
    assert stored(stores, ref.key) == BODY
    assert len(refused) == 2
    assert client.asked[-1] == "PUT 200"


def test_expired_links_are_renewed_during_an_upload(
    client: Client, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = stores.blobs.part_links

    def old_at_first(key: str, size: int, parts_crc32: list[int], upload_id: str | None) -> Any:
        fresh = make(key, size, parts_crc32, upload_id)
        assert fresh is not None
        if upload_id is not None:
            return fresh
        with pytest.MonkeyPatch.context() as patch:
            made = datetime.fromtimestamp(time.time() - LINK_S - 5.0, UTC)
            patch.setattr("botocore.auth.get_current_datetime", lambda: made)
            return make(key, size, parts_crc32, fresh.upload_id)

    monkeypatch.setattr(stores.blobs, "part_links", old_at_first)
    ref = client.send()
    assert stored(stores, ref.key) == BODY
    assert client.asked[-4:] == [*PARTS, "POST 200"]
    assert set(client.asked[:-4]) == {"part PUT 403"}
    assert [message.uploads[0].key for message in client.prepared] == [None, "data/a/1"]


def test_an_interrupted_upload_starts_over(client: Client, stores: Stores) -> None:
    """The parts of an interrupted upload do not disturb the next one."""
    client.lost = lambda link: "partNumber=2" in link.url
    client.policy.patience_s = 0.0
    with pytest.raises(Exception, match="no blob store answers"):
        client.send()
    client.lost = lambda _: False
    assert stored(stores, client.send().key) == BODY
    assert not stores.blobs.exists("data/a/1")


class Master(MasterClient):
    """A worker's client of a master in this process."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(NOWHERE, "token", Reach(lambda _: None))
        self.blobs = stores.blobs
        self.prepared: list[PrepareResults] = []
        self.asked: list[str] = []

    def call(self, _: Any, request: Any, **__: Any) -> Any:  # type: ignore[override]
        self.prepared.append(request)
        links = UploadLinks(self.blobs)
        made = [(f"results/p/l/{each.seq}", links.make(f"results/p/l/{each.seq}", each)) for each in request.results]
        return PrepareResultsReply(results=[PreparedResult(key=key, link=both[0], parts=both[1]) for key, both in made])

    def complete(self, link: Link, body: bytes) -> None:
        self.asked.append("complete")
        super().complete(link, body)


@pytest.fixture
def master(stores: Stores) -> Iterator[Master]:
    master = Master(stores)
    yield master
    master.hang_up()
    master._channel.close()


def publication(seq: int, *data: bytes) -> Publication:
    results = [TaskResult(index, "ok", 1, each) for index, each in enumerate(data)]
    return Publication(
        package_id="p", lease_id="l", receipt="r", start=0, end=2, generation=1, seq=seq, results=results
    )


def test_large_results_go_in_parts(master: Master, stores: Stores) -> None:
    large, small, other = upload_large(
        master, [publication(0, BODY[:9], BODY), publication(1), publication(2, BODY[1:])]
    )
    assert [result.blob for result in large.results] == [None, BlobRef("results/p/l/0", len(BODY))]
    assert small == publication(1)
    assert other.results[0].blob == BlobRef("results/p/l/2", len(BODY) - 1)
    assert stored(stores, "results/p/l/0") == BODY
    assert stored(stores, "results/p/l/2") == BODY[1:]
    assert (len(master.prepared), master.asked) == (1, ["complete"] * 2)


def test_results_that_are_stored_already_are_not_stored_twice(master: Master, stores: Stores) -> None:
    """The same results are uploaded twice, as after a lost answer."""
    first, again = upload_large(master, [publication(0, BODY)]), upload_large(master, [publication(0, BODY)])
    assert first == again
    assert stored(stores, "results/p/l/0") == BODY


def test_results_whose_parts_are_refused_go_whole(
    master: Master, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = stores.blobs.part_links

    def spoilt(*wanted: Any) -> Any:
        parts = make(*wanted)
        assert parts is not None
        return replace(parts, complete=replace(parts.complete, url=f"{parts.complete.url}0"))

    monkeypatch.setattr(stores.blobs, "part_links", spoilt)
    (made,) = upload_large(master, [publication(0, BODY)])
    assert made.results[0].blob == BlobRef("results/p/l/0", len(BODY))
    assert stored(stores, "results/p/l/0") == BODY
    assert [bool(request.results[0].parts_crc32) for request in master.prepared] == [True, True, False]
