"""Requests to a master with all kinds of faults."""

import logging
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

import pytest

from cloudpar import Pool
from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar.errors import Forbidden, InvalidToken, MasterUnreachable, RateLimited, RequestError, Unavailable
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import AwaitTasks, Cursor, Hello, HelloReply
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.transport.retries import Stopped
from support import fake_master
from support.fake_master import TOKEN, FakeMaster

Connect = Callable[..., Connection]


@pytest.fixture
def connect(master: FakeMaster) -> Iterator[Connect]:
    """Make connections with some patience or token. They are closed after the test."""
    with ExitStack() as stack:

        def connect(patience_s: float = 30.0, *, met: bool = False, token: str = TOKEN) -> Connection:
            made = Connection(master.endpoint, token, RetryPolicy(patience_s, met=met))
            stack.callback(made.close)
            return made

        yield connect


@pytest.mark.parametrize("fault", [429, 500, 503, "drop", "refuse", b'{"message":"Too Many Requests"}'])
def test_requests_are_repeated_after_faults(master: FakeMaster, connect: Connect, fault: int | str | bytes) -> None:
    master.faults["hello"] = deque([fault, fault])
    assert connect().call(routes.HELLO, Hello()).role == "user"
    assert master.seen["hello"] == 3


def test_a_package_is_started_once_however_often_it_is_requested(master: FakeMaster) -> None:
    master.faults["start_tasks"] = deque(["drop", "drop", 503])
    with Pool(master.endpoint, TOKEN) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
    assert master.seen["start_tasks"] == 4
    assert len(master.packages) == 1


def test_every_request_of_a_run_fails_once(master: FakeMaster) -> None:
    for name in ("hello", "prepare_uploads", "put", "start_tasks", "await_tasks", "get", "acknowledge"):
        master.faults[name] = deque([503])
    values = [bytes([number]) * 100_000 for number in range(5)]
    with Pool(master.endpoint, TOKEN) as pool:
        assert list(pool.map(lambda value: value * 2, values)) == [value * 2 for value in values]
    assert not any(master.faults.values())
    assert len(master.packages) == len(master.acknowledged) == 1


def test_dropped_uploads_are_sent_again_whole(master: FakeMaster) -> None:
    master.faults["put"] = deque(["drop", "drop"])
    with Pool(master.endpoint, TOKEN) as pool:
        assert list(pool.map(len, [bytes(300_000)])) == [300_000]
    assert master.seen["put"] == 3


def test_repeated_results_are_taken_once(master: FakeMaster) -> None:
    master.page_tasks, master.repeat_results = 10, True
    with Pool(master.endpoint, TOKEN) as pool:
        assert list(pool.map(abs, range(100))) == list(range(100))
        assert sorted(pool.map_unordered(abs, range(100))) == list(range(100))


def test_a_refusal_is_not_repeated(master: FakeMaster, connect: Connect) -> None:
    with pytest.raises(InvalidToken):
        connect(token="another token").call(routes.HELLO, Hello())
    assert master.seen["hello"] == 1


def test_an_expired_link_is_renewed(master: FakeMaster) -> None:
    master.faults["get"] = deque([403])
    with Pool(master.endpoint, TOKEN) as pool:
        assert list(pool.map(bytes, [5000])) == [bytes(5000)]
    assert master.seen["get"] == 2


def test_a_payload_that_is_gone_fails_its_package(master: FakeMaster) -> None:
    master.faults["get"] = deque([404, 404])
    with Pool(master.endpoint, TOKEN) as pool, pytest.raises(RequestError, match=r"download of a payload.*404"):
        list(pool.map(bytes, [5000]))


def test_a_short_download_is_tried_again(master: FakeMaster, connect: Connect) -> None:
    master.blobs["k"] = b"abc"
    link = Link(method="GET", url=f"{master.endpoint}/blobs/k")
    assert connect().get(link, 1, 3) == b"bc"
    with pytest.raises(RequestError, match="of 5 bytes brought 3"):
        connect(0.0, met=True).get(link, 0, 5)


def test_what_a_store_refuses_is_named(master: FakeMaster, connect: Connect) -> None:
    hasty = connect(0.0, met=True)
    master.faults["put"] = deque([403, 503])
    link = Link("PUT", f"{master.endpoint}/blobs/k")
    for status, kind in ((403, RequestError), (503, Unavailable)):
        with pytest.raises(kind, match=f"^the upload of a payload was refused: HTTP status {status}: not now$"):
            hasty.put(link, [b"payload"])


@pytest.mark.parametrize("server", ["closed", "silent", "unknown"])
def test_a_server_that_does_not_answer_at_first_contact_is_unreachable(
    monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    monkeypatch.setattr("cloudpar._client.retry_policy.FIRST_CONTACT_S", 0.3)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # no other process can listen there
        if server == "silent":
            sock.listen()
        place = "no-such-host.invalid" if server == "unknown" else f"127.0.0.1:{sock.getsockname()[1]}"
        with pytest.raises(MasterUnreachable, match=rf"no master answers at http://{place}.*check the endpoint"):
            Pool(f"http://{place}", "x")


def test_a_master_that_asks_to_wait_at_first_contact_is_waited_for(
    master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other pools of the account may use up its rate."""
    monkeypatch.setattr("cloudpar._pool.lifetime.CONTACT_S", 0.2)
    monkeypatch.setattr("cloudpar._client.retry_policy.FIRST_CONTACT_S", 0.2)
    master.faults["hello"] = deque([codec.encode_error(RateLimited("later", retry_after_s=0.3))] * 2)
    with Pool(master.endpoint, TOKEN) as pool:
        assert list(pool.map(abs, [-1])) == [1]


def test_a_host_name_that_never_resolves_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudpar._pool.lifetime.CONTACT_S", 0.1)
    resolved = threading.Event()

    def resolve(*_: object, **__: object) -> None:
        assert resolved.wait(60)
        raise OSError

    monkeypatch.setattr("cloudpar_protocol.transport.connection_pool.create_connection", resolve)
    with pytest.raises(MasterUnreachable, match="check the endpoint"):
        Pool("http://slow.invalid", "x")
    resolved.set()


def test_another_web_server_at_the_endpoint_is_unreachable(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    master.faults["hello"] = deque([429])
    page = RequestError("HTTP status 404, not from a master")
    monkeypatch.setattr(codec, "decode_error", lambda *_: page)
    with pytest.raises(MasterUnreachable, match=r"not from a master.*check the endpoint"):
        Pool(master.endpoint, TOKEN)


def test_an_endpoint_with_a_wrong_path_is_unreachable(embedded: Pool) -> None:
    with pytest.raises(MasterUnreachable, match=r"/foo: POST /foo/v1/hello: Not Found; check the endpoint"):
        Pool(f"{embedded.endpoint}/foo", TOKEN)


def test_an_absence_of_the_master_is_waited_for_and_logged(
    master: FakeMaster, connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "cloudpar")
    known = connect()
    known.call(routes.HELLO, Hello())
    clock = iter(range(0, 10**6, 2))  # each reading is two seconds later
    monkeypatch.setattr("cloudpar._client.waiting.time.monotonic", lambda: float(next(clock)))
    master.faults["hello"] = deque(["refuse", 503, "refuse"])
    known.call(routes.HELLO, Hello())
    away, back = (record.getMessage() for record in caplog.records)
    assert "cannot serve requests now (later)" in away
    assert "is back after" in back


def test_a_client_that_is_asked_to_wait_waits_and_logs_it(
    master: FakeMaster, connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "cloudpar")
    impatient = connect(0.0)
    impatient.call(routes.HELLO, Hello())
    clock = iter(range(0, 10**6, 2))
    monkeypatch.setattr("cloudpar._client.waiting.time.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr("cloudpar._client.retry_policy.LONGEST_S", 0.01)
    master.faults["hello"] = deque([429] * 12)
    impatient.call(routes.HELLO, Hello())
    assert master.seen["hello"] == 14
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2  # in 72 s of its own clock
    assert "has delayed a request for" in texts[0]


def test_an_allowance_ends_the_repetitions_of_a_request(master: FakeMaster, connect: Connect) -> None:
    known = connect()
    known.call(routes.HELLO, Hello())
    master.faults["hello"] = deque([429] * 100)
    with pytest.raises(RateLimited):
        known.call(routes.HELLO, Hello(), allowance_s=0.1)


def test_a_master_that_is_away_longer_than_the_patience_is_unreachable(master: FakeMaster, connect: Connect) -> None:
    impatient = connect(0.0)
    impatient.call(routes.HELLO, Hello())
    master.faults["hello"] = deque(["refuse"])
    with pytest.raises(MasterUnreachable, match=r"patience_s=0"):
        impatient.call(routes.HELLO, Hello())


def test_a_held_request_ends_with_the_connection(master: FakeMaster, connect: Connect) -> None:
    master.automatic = False
    with Pool(master.endpoint, TOKEN) as pool:
        package_id = pool.map(abs, [1]).detach()
    known = connect()
    ended: list[BaseException] = []

    def ask() -> None:
        message = AwaitTasks(session="s", packages=[Cursor(package_id=package_id)], hold_s=20.0)
        try:
            known.call(routes.AWAIT_TASKS, message, hold_s=20.0)
        except Stopped as error:
            ended.append(error)

    thread = threading.Thread(target=ask)
    before = master.seen["await_tasks"]
    thread.start()
    master.wait_for(lambda: master.seen["await_tasks"] > before)
    known.close()
    thread.join()
    assert ended


@pytest.mark.parametrize("role", ["worker", "admin"])
def test_a_token_of_another_role_is_refused(
    master: FakeMaster, monkeypatch: pytest.MonkeyPatch, role: Literal["worker", "admin"]
) -> None:
    def hello(_: FakeMaster, __: Hello) -> HelloReply:
        return HelloReply(release="0.1.0", role=role)

    answers: dict[type[Any], Callable[[FakeMaster, Any], Any]] = {**fake_master._ANSWERS, Hello: hello}
    monkeypatch.setattr(fake_master, "_ANSWERS", answers)
    with pytest.raises(Forbidden, match=f"this is the {role} token of .*`cloudpar account create NAME`"):
        Pool(master.endpoint, TOKEN)
