"""How the agent combines several answers to one instruction."""

import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.limits import BULK_ITEMS, INLINE_RESULT_BYTES
from cloudpar_protocol.payloads import BlobData, BlobRef, Link, TaskResult
from cloudpar_protocol.worker_messages import (
    ExtendLeasesReply,
    Lease,
    LeaseRef,
    LeaseView,
    PrepareResults,
    Publication,
    PublishResultsReply,
    RetrieveTasks,
    RetrieveTasksReply,
)
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.backlog import DOWNLOADS, PUBLISH_JOBS
from cloudpar_worker.shell import master_io
from cloudpar_worker.shell.master_client import PayloadRefused
from cloudpar_worker.shell.master_io import MasterIO
from support.leases import code_from, lease_of

LEASE: dict[str, Any] = {"package_id": "p", "lease_id": "l", "receipt": "r", "start": 0, "end": 1, "generation": 1}


class Answers:
    """A master whose first answer alone says that other workers are idle and that a first chunk waits."""

    def __init__(self, reply: type[ExtendLeasesReply | PublishResultsReply]) -> None:
        self._reply = reply
        self.asked = 0

    def call(self, _route: Any, _request: Any, **_: Any) -> ExtendLeasesReply | PublishResultsReply:
        self.asked += 1
        return self._reply(leases=[], hungry=self.asked == 1, waiting=self.asked == 1)


def beat(master: MasterIO) -> None:
    master.extend([LeaseRef(**LEASE)] * (BULK_ITEMS + 1))


def publish(master: MasterIO) -> None:
    made = Publication(**LEASE, seq=0, results=[TaskResult(0, "ok", 1, b"")])
    master.publish([made] * (BULK_ITEMS + 1), None)


@pytest.mark.parametrize(("ask", "reply"), [(beat, ExtendLeasesReply), (publish, PublishResultsReply)])
def test_what_any_of_several_answers_mentions_is_reported(
    ask: Callable[[MasterIO], None], reply: type[ExtendLeasesReply | PublishResultsReply]
) -> None:
    """The last answer may concern leases that have ended, and then it says nothing."""
    heard: SimpleQueue[on.Stimulus] = SimpleQueue()
    master = MasterIO("http://127.0.0.1:9", "token", 1, heard.put, memory_bytes=10**9)
    answers: Any = Answers(reply)
    master._client = answers
    ask(master)
    stimulus = heard.get(timeout=60)
    assert isinstance(stimulus, on.Extended | on.Published)
    assert (stimulus.hungry, stimulus.waiting, answers.asked) == (True, True, 2)


@pytest.mark.parametrize(("ask", "reply"), [(beat, ExtendLeasesReply), (publish, PublishResultsReply)])
def test_requests_are_sent_when_tasks_have_used_up_all_processes(
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[MasterIO], None],
    reply: type[ExtendLeasesReply | PublishResultsReply],
) -> None:
    """The system then starts no thread, and an agent that needed one would end."""
    heard: SimpleQueue[on.Stimulus] = SimpleQueue()
    master = MasterIO("http://127.0.0.1:9", "token", 1, heard.put, memory_bytes=10**9)
    answers: Any = Answers(reply)
    master._client = answers

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    ask(master)
    assert isinstance(heard.get(timeout=60), on.Extended | on.Published)


class Refusing:
    """A master that refuses the first request for work."""

    def __init__(self) -> None:
        self._asked = 0

    def call(self, *_: Any, **__: Any) -> RetrieveTasksReply:
        self._asked += 1
        if self._asked == 1:
            raise BadRequest("x")
        return RetrieveTasksReply(leases=[])


def test_only_a_request_for_work_that_was_answered_counts_as_heard() -> None:
    heard: list[None] = []
    stimuli: SimpleQueue[on.Stimulus] = SimpleQueue()
    master = MasterIO(
        "http://127.0.0.1:9", "token", 1, stimuli.put, memory_bytes=10**9, heard=lambda: heard.append(None)
    )
    refusing: Any = Refusing()
    for expected in (0, 1):
        master._retrieve(refusing, RetrieveTasks(attempt_id="a", worker_id="w", executors=1, chunks=1))
        assert len(heard) == expected


class Broken:
    """A blob store or a master whose answers about one package meet a bug of the agent."""

    def get(self, *_: Any) -> bytes:
        raise IndexError("tuple index out of range")

    def call(self, _route: Any, request: Any, **_: Any) -> PublishResultsReply:
        if any(made.lease_id == "broken" for made in request.publications):
            raise OverflowError("can't serialize")
        views = [LeaseView(lease_id=made.lease_id, state="wanted") for made in request.publications]
        return PublishResultsReply(leases=views)


@pytest.fixture
def heard() -> SimpleQueue[on.Stimulus]:
    return SimpleQueue()


@pytest.fixture
def io(heard: SimpleQueue[on.Stimulus], monkeypatch: pytest.MonkeyPatch) -> MasterIO:
    """A MasterIO over Broken. If one of its threads ends the agent, the test fails."""
    monkeypatch.setattr(os, "_exit", lambda code: heard.put(on.GarbageReceived(0, f"the agent ended: {code}")))
    io = MasterIO("http://127.0.0.1:9", "token", 1, heard.put, memory_bytes=10**9)
    broken: Any = Broken()
    io._client = io.payloads._client = broken
    return io


def test_an_unexpected_error_over_a_payload_fails_the_download_of_its_lease(
    io: MasterIO, heard: SimpleQueue[on.Stimulus]
) -> None:
    """It once ended the agent, and with it the tasks of all accounts."""
    data = BlobData(BlobRef("data/one", 100))
    lease = lease_of(code_from(b"code"), 1, data=data, data_link=Link("GET", "data/one"))
    io.download(lease, (0, 1))
    why = "IndexError('tuple index out of range')"
    assert heard.get(timeout=60) == on.DownloadFailed(lease.lease_id, stale=False, why=why)


def test_an_unexpected_error_over_a_result_takes_no_other_result_with_it(
    io: MasterIO, heard: SimpleQueue[on.Stimulus]
) -> None:
    made = [Publication(**LEASE | {"lease_id": name}, seq=0, results=[]) for name in ("broken", "other")]
    io.publish(made, None)
    stimulus = heard.get(timeout=60)
    assert isinstance(stimulus, on.Published)
    assert stimulus.lease_ids == ["broken", "other"]
    assert [view.lease_id for view in stimulus.views] == ["other"]


def test_a_lease_whose_payload_cannot_be_verified_is_refused_alone(
    io: MasterIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = lease_of(code_from(b"code"), 1), lease_of(code_from(b"code"), 1)

    def verify(lease: Lease) -> None:
        if lease is first:
            raise OverflowError("int too large")

    monkeypatch.setattr(master_io, "verify", verify)
    answers: Any = SimpleNamespace(call=lambda *_: RetrieveTasksReply(leases=[first, second]))
    stimulus = io._retrieve(answers, RetrieveTasks(attempt_id="a", worker_id="w", executors=1, chunks=1))
    assert isinstance(stimulus, on.Retrieved)
    assert stimulus.leases == [first, second]
    assert list(stimulus.broken) == [first.lease_id]


class Stuck:
    """A master and a blob store that never serve the large results of anyone, or the downloads of a bad link."""

    own_folder = False

    def __init__(self) -> None:
        self._released = threading.Event()

    def call(self, _route: Any, request: Any, **_: Any) -> PublishResultsReply:
        if isinstance(request, PrepareResults):
            self._released.wait()
            raise BadRequest("x")
        return PublishResultsReply(leases=[])

    def get(self, link: Link, *_: Any) -> bytes:
        if link.url == "bad":
            self._released.wait()
        raise PayloadRefused("x")

    def release(self) -> None:
        """Let the threads go on."""
        self._released.set()


@pytest.fixture
def _stuck(io: MasterIO) -> Iterator[None]:
    stuck: Any = Stuck()
    io._client = io.payloads._client = stuck
    yield
    stuck.release()


@pytest.mark.usefixtures("_stuck")
def test_results_are_published_while_uploads_of_another_account_never_end(
    io: MasterIO, heard: SimpleQueue[on.Stimulus]
) -> None:
    large = [TaskResult(0, "ok", 1, bytes(INLINE_RESULT_BYTES + 1))]
    for number in range(PUBLISH_JOBS):
        made = Publication(**LEASE | {"lease_id": f"bad {number}"}, seq=0, results=large)
        io.publish([made], None, "bad")
    for uploads_for in (None, "good"):
        io.publish([Publication(**LEASE, seq=0, results=[])], None, uploads_for)
        stimulus = heard.get(timeout=60)
        assert isinstance(stimulus, on.Published)
        assert stimulus.lease_ids == ["l"]


@pytest.mark.usefixtures("_stuck")
def test_payloads_are_downloaded_while_downloads_of_another_account_never_end(
    io: MasterIO, heard: SimpleQueue[on.Stimulus]
) -> None:
    data = BlobData(BlobRef("data/one", 100))
    for url in ["bad"] * DOWNLOADS + ["good"]:
        io.download(lease_of(code_from(b"code"), 1, data=data, data_link=Link("GET", url)), (0, 1))
    assert isinstance(heard.get(timeout=60), on.DownloadFailed)
