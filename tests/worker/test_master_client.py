"""Calls that are repeated, and payloads by links, as S3 answers them."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from urllib3 import HTTPResponse

from cloudpar_protocol import routes
from cloudpar_protocol.parts import PIECE_BYTES
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.worker_messages import ExtendLeases, GiveBack
from cloudpar_worker import reach as reach_module
from cloudpar_worker.lease_record import LeaseRecord
from cloudpar_worker.master_client import MasterClient, PayloadRefused, Stopped
from cloudpar_worker.reach import Reach
from worker.leases import lease_of
from worker.scripted_master import TOKEN, ScriptedMaster


@pytest.fixture
def client(master: ScriptedMaster) -> Iterator[MasterClient]:
    client = MasterClient(master.endpoint, TOKEN, Reach(lambda _stalled_us: None))
    yield client
    client.hang_up()
    client._stores.clear()


def test_what_is_repeated_says_for_how_long_nothing_has_succeeded(monkeypatch: pytest.MonkeyPatch) -> None:
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
    client._lines.close()


def test_an_upload_that_is_there_already_is_done(master: ScriptedMaster, client: MasterClient) -> None:
    """The answer to the first try was lost on its way."""
    link = Link("PUT", f"{master.endpoint}/blob/results/l/0", {"If-None-Match": "*"})
    for _ in range(2):
        client.upload(link, b"result")
    assert master.blobs == {"results/l/0": b"result"}


def test_an_old_link_is_refused(master: ScriptedMaster, client: MasterClient) -> None:
    master.set(refused_uploads=1)
    with pytest.raises(PayloadRefused, match="403"):
        client.upload(Link("PUT", f"{master.endpoint}/blob/results/l/0"), b"result")


def test_the_time_limit_is_for_each_piece_of_a_payload(client: MasterClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library allows one send the time of one connect: a whole payload takes longer on a slow line."""
    sent: list[tuple[list[int], str]] = []

    def request(*_: object, body: list[memoryview], headers: dict[str, str], **__: object) -> HTTPResponse:
        sent.append(([len(piece) for piece in body], headers["Content-Length"]))
        return HTTPResponse(status=200)

    monkeypatch.setattr(client._stores, "request", request)
    client.upload(Link("PUT", "http://store/k"), bytes(2 * PIECE_BYTES + 1))
    assert sent == [([PIECE_BYTES, PIECE_BYTES, 1], str(2 * PIECE_BYTES + 1))]
