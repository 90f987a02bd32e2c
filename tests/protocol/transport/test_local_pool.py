"""Calls over a Unix socket, with a server that answers as each test scripts it."""

import os
import select
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cloudpar_protocol import frames
from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.transport.answer import Answer
from cloudpar_protocol.transport.interruption import Interruption
from cloudpar_protocol.transport.local_pool import PIECE_BYTES, LocalPool, NoSocketYet
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.transport.socket_pool import Timeouts
from support.waiting import until

LONG = Timeouts(30.0, 30.0)
OK = frames.answer(200, b"hi")


class Server:
    """Serves one connection after the other: each entry is one connection, with the parts of one answer for each call.

    `heard` are the frames that each connection has brought, joined.
    """

    def __init__(self, folder: Path) -> None:
        self.heard: list[bytes] = []
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(PayloadFolder(str(folder)).socket)
        self.listening.listen()

    def serve(self, *connections: list[list[bytes]]) -> None:
        def run() -> None:
            for answers in connections:
                connection, _ = self.listening.accept()
                self.heard.append(b"")
                with connection:
                    self._hear(connection)  # the token
                    for parts in answers:
                        self._hear(connection)
                        for part in parts:
                            connection.sendall(part)

        threading.Thread(target=run, daemon=True).start()

    def _hear(self, connection: socket.socket) -> None:
        head = connection.recv(frames.CALL.size, socket.MSG_WAITALL)
        name_bytes, size = frames.CALL.unpack(head)
        self.heard[-1] += head + connection.recv(name_bytes + size, socket.MSG_WAITALL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.listening.close()


@pytest.fixture
def pool(server: Server, tmp_path: Path) -> Iterator[LocalPool]:
    pool = LocalPool(PayloadFolder(str(tmp_path)), "token")
    yield pool
    pool.close()


def test_calls_share_a_connection_that_starts_with_the_token(server: Server, pool: LocalPool) -> None:
    server.serve([[OK], [frames.answer(404, b"no")]])
    assert pool.post("/v1/a", b"1", LONG) == Answer(200, b"hi")
    assert pool.post("/v1/b", b"", LONG) == Answer(404, b"no")
    calls = frames.call("", b"token"), frames.call("/v1/a", b"1"), frames.call("/v1/b", b"")
    assert server.heard == [b"".join(calls)]


@pytest.mark.parametrize("size", [0, 10, PIECE_BYTES + 100_000])
def test_an_answer_may_come_in_pieces(server: Server, pool: LocalPool, size: int) -> None:
    body = os.urandom(size)
    answer = frames.answer(200, body)
    server.serve([[answer[:1], answer[1:4], answer[4:5], answer[5:8], answer[8:]], [OK]])
    assert pool.post("/v1/a", b"", LONG) == Answer(200, body)
    assert pool.post("/v1/b", b"", LONG).body == b"hi"


@pytest.mark.parametrize("parts", [[], [OK[:3]], [OK[:-1]]])
def test_an_answer_that_ends_too_early_is_an_error(server: Server, pool: LocalPool, parts: list[bytes]) -> None:
    server.serve([parts], [[OK]])
    with pytest.raises(ConnectionResetError):
        pool.post("/v1/a", b"", LONG)
    assert pool.post("/v1/a", b"", LONG).body == b"hi"


def test_a_connection_that_the_master_has_closed_is_not_used_again(server: Server, pool: LocalPool) -> None:
    server.serve([[OK]], [[OK]])
    assert pool.post("/v1/a", b"", LONG).body == b"hi"
    until(lambda: bool(select.select(pool._idle, [], [], 0)[0]))
    assert pool.post("/v1/a", b"", LONG).body == b"hi"
    assert len(server.heard) == 2


def test_a_master_that_is_silent_is_an_error(server: Server, pool: LocalPool) -> None:
    with pytest.raises(TimeoutError):  # the kernel has accepted the connection, and no process serves it
        pool.post("/v1/a", b"", Timeouts(30.0, 0.05))


def test_without_a_socket_nothing_is_sent(server: Server, pool: LocalPool, tmp_path: Path) -> None:
    server.listening.close()  # as that of a master that was killed
    with pytest.raises(NoSocketYet, match="refused"):
        pool.post("/v1/a", b"", LONG)
    shutil.rmtree(tmp_path)
    with pytest.raises(NoSocketYet, match="was removed"):
        pool.post("/v1/a", b"", LONG)


def test_the_token_is_not_sent_to_another_user(pool: LocalPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(BadRequest, match="belongs to another user now"):
        pool.post("/v1/a", b"", LONG)


@pytest.mark.parametrize("end", [LocalPool.close, LocalPool.hang_up])
def test_after_its_end_a_pool_sends_nothing(pool: LocalPool, end: Callable[[LocalPool], None]) -> None:
    end(pool)
    with pytest.raises(ConnectionAbortedError, match="this side closes"):
        pool.post("/v1/a", b"", LONG)


def test_another_thread_can_interrupt_a_call(server: Server, pool: LocalPool) -> None:
    interruption = Interruption()
    with ThreadPoolExecutor() as threads:
        call = threads.submit(pool.post, "/v1/a", b"", LONG, interruption)
        connection, _ = server.listening.accept()
        with connection:
            assert connection.recv(1)
            interruption.interrupt()
            with pytest.raises(OSError):  # noqa: PT011 - any error of the socket
                call.result(30)
