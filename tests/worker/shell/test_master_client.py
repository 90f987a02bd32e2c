"""Repeated calls, and payload transfers by links as S3 answers them."""

import errno
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloudpar_protocol import codec, routes
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.payloads import Link, Unwritable
from cloudpar_protocol.transport.answer import Answer
from cloudpar_protocol.transport.connection_pool import ConnectionPool
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.transport.retries import Stopped
from cloudpar_protocol.worker_messages import ExtendLeases, GiveBack, RetrieveTasks, RetrieveTasksReply
from cloudpar_worker.core.lease_record import LeaseRecord
from cloudpar_worker.shell import reach as reach_module
from cloudpar_worker.shell.master_client import MasterClient
from cloudpar_worker.shell.reach import Reach
from support.leases import lease_of
from support.running_agent import TOKEN
from worker.scripted_master import ScriptedMaster

DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


@pytest.fixture
def client(master: ScriptedMaster) -> Iterator[MasterClient]:
    client = MasterClient(master.endpoint, TOKEN, Reach(lambda _stalled_us: None))
    yield client
    client._channel.close()


def test_a_repeated_request_reports_the_time_since_the_last_success(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 11.5, 70.0, 70.25])
    monkeypatch.setattr(reach_module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    stalled: list[int] = []
    reach = Reach(stalled.append)
    reach.repeats()
    reach.succeeded()
    reach.repeats()
    assert stalled == [1_500_000, 250_000]


def test_a_beat_that_fails_is_not_repeated(master: ScriptedMaster) -> None:
    repeated = 0

    def repeats(_stalled_us: int) -> None:
        nonlocal repeated
        repeated += 1
        master.set(away=repeated < 3)

    client = MasterClient(master.endpoint, TOKEN, Reach(repeats))
    record = LeaseRecord(lease_of(abs, 1), 0, 0)
    master.set(away=True)
    with pytest.raises(Stopped):
        client.call(routes.EXTEND_LEASES, ExtendLeases(worker_id="w", leases=[record.reference()]), repeat=False)
    assert (master.refused, repeated) == (1, 0)
    client.call(routes.GIVE_BACK, GiveBack(worker_id="w", returns=[record.give_back(1)]))
    assert repeated == 3
    client._channel.close()


def answers(monkeypatch: pytest.MonkeyPatch, *given: OSError | Answer) -> list[str]:
    """Let blob stores answer so, one request after the other; the addresses that are requested."""
    rest, asked = iter(given), list[str]()

    def request(pool: ConnectionPool, _method: str, target: str, *_: object, **__: object) -> Answer:
        asked.append(f"{pool._address[0]}:{pool._address[1]}{target}")
        answer = next(rest)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(ConnectionPool, "request", request)
    return asked


def test_a_store_that_refuses_repeatedly_is_logged_once_with_its_words(
    client: MasterClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = codec.encode_error(Unavailable("no room: free space on its disk"))
    busy = Answer(503, body, {b"content-type": codec.MSGPACK.encode()})
    asked = answers(monkeypatch, busy, busy, busy, Answer(200, b""))
    client.put(Link("PUT", "/blobs/k"), [b"result"])
    assert asked == [f"{client._channel.endpoint.removeprefix('http://')}/blobs/k"] * 4
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        rf"{DATE} cloudpar worker: the blob store at {client._channel.endpoint} answered: no room: .*; trying again",
        line,
    )


def test_a_store_that_does_not_answer_is_named_by_its_own_address(
    client: MasterClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, OSError(), OSError(), Answer(200, b""))
    client.put(Link("PUT", "http://store:9000/k?signature=secret"), [b"result"])
    away, back = capsys.readouterr().err.splitlines()
    assert "the blob store at http://store:9000 does not answer" in away
    assert "the blob store at http://store:9000 answers again" in back


def test_a_folder_that_cannot_be_written_is_retried(
    client: MasterClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = MasterClient(client._channel.endpoint, TOKEN, Reach(lambda _: None), PayloadFolder(str(tmp_path)))
    put, tries = PayloadFolder.put, 0

    def put_at_the_third_try(folder: PayloadFolder, url: str, body: list[bytes]) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        put(folder, url, body)

    monkeypatch.setattr(PayloadFolder, "put", put_at_the_third_try)
    reports: list[Unwritable] = []
    own.put(Link("PUT", (tmp_path / "k").as_uri()), [b"result"], reports.append)
    assert (tmp_path / "k").read_bytes() == b"result"
    (line,) = capsys.readouterr().err.splitlines()
    assert f"results cannot be written to {tmp_path} (No space left on device, ENOSPC)" in line
    assert [each.errno for each in reports] == [errno.ENOSPC] * 2
    assert reports[0].why == f"a worker cannot write results to {tmp_path} (No space left on device)"


def test_a_repeated_retrieval_says_that_it_is_one(client: MasterClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first answer may have been lost together with chunks."""
    sent: list[RetrieveTasks] = []

    def send(_route: object, body: bytes, _timeouts: object) -> RetrieveTasksReply:
        sent.append(codec.decode(body, RetrieveTasks))
        if len(sent) < 3:
            raise OSError
        return RetrieveTasksReply()

    monkeypatch.setattr(client._channel, "call", send)
    monkeypatch.setattr(client._stopped, "wait", lambda _seconds: None)
    client.call(routes.RETRIEVE_TASKS, RetrieveTasks(attempt_id="a", worker_id="w", executors=1, chunks=1))
    assert [(request.attempt_id, request.again) for request in sent] == [("a", False), ("a", True), ("a", True)]
