"""Connections that are kept open, with a server that answers as each test scripts it."""

import gc
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from cloudpar_protocol.transport import connection_pool
from cloudpar_protocol.transport.connection_pool import PIECE_BYTES, ConnectionPool
from cloudpar_protocol.transport.interruption import Interruption
from cloudpar_protocol.transport.socket_pool import Timeouts

TIME_S = 30.0
LONG = Timeouts(TIME_S, TIME_S)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Script:
    """Serves one connection after the other: each entry is one connection, with one answer for each request."""

    def __init__(self, *connections: list[list[bytes]]) -> None:
        self.connections = list(connections)
        self.requests: list[bytes] = []
        self.reads = True
        """Whether it reads bodies before it answers."""
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self) -> None:
        for answers in self.connections:
            connection, _ = self.listening.accept()
            with connection, connection.makefile("rb") as stream:
                for answer in answers:
                    head = b""
                    while not head.endswith(b"\r\n\r\n") and (more := stream.readline()):
                        head += more
                    size = int(head.lower().partition(b"content-length:")[2].split()[0])
                    self.requests.append(head + (stream.read(size) if self.reads else b""))
                    for part in answer:
                        connection.sendall(part)


@contextmanager
def serving(*connections: list[list[bytes]], path: str = "") -> Iterator[tuple[Script, ConnectionPool]]:
    script = Script(*connections)
    pool = ConnectionPool(script.endpoint + path, {"Authorization": "Bearer x"})
    script.thread.start()
    try:
        yield script, pool
    finally:
        pool.close()
        script.listening.close()
        script.thread.join(TIME_S)


def ask(pool: ConnectionPool, interruption: Interruption | None = None) -> tuple[int, bytes]:
    return pool.post("/v1/hello", b"body", LONG, interruption)[:2]


@contextmanager
def under_way(
    listening: socket.socket, pool: ConnectionPool, *more: Any
) -> Iterator[tuple[socket.socket, Future[Any]]]:
    """A request that a server has received and not answered: the server's connection, and the request's answer."""
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(ask, pool, *more)
        with listening.accept()[0] as theirs:
            theirs.recv(1)
            yield theirs, answer


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def pool(listening: socket.socket) -> Iterator[ConnectionPool]:
    pool = ConnectionPool(f"http://127.0.0.1:{listening.getsockname()[1]}", {})
    yield pool
    pool.close()


def test_a_request_is_sent_with_its_headers_and_body() -> None:
    with serving([[OK]], path="/stage/") as (script, pool):
        assert ask(pool) == (200, b"hi")
        host = script.endpoint.removeprefix("http://")
    assert script.requests == [
        f"POST /stage/v1/hello HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer x\r\n".encode()
        + b"Content-Length: 4\r\n\r\nbody"
    ]


def test_a_connection_is_kept() -> None:
    with serving([[OK], [OK], [OK]]) as (_, pool):
        assert [ask(pool)[1] for _ in range(3)] == [b"hi"] * 3


def test_answers_come_in_any_pieces_and_in_chunks() -> None:
    chunked = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    with serving([[OK[i : i + 1] for i in range(len(OK))], [chunked]]) as (_, pool):
        assert ask(pool) == (200, b"hi")
        assert ask(pool) == (503, b"abc")


def test_what_comes_before_an_answer_is_passed_over() -> None:
    early = b"HTTP/1.1 100 Continue\r\nContent-Type: none\r\n\r\n"
    with serving([[early, OK], [b"HTTP/1.1 204 No Content\r\nETag: e\r\n\r\n"]]) as (_, pool):
        assert ask(pool) == (200, b"hi")
        answer = pool.post("/v1/hello", b"", LONG)
    assert answer[:2] == (204, b"")
    assert (answer.header("etag"), answer.header("content-type")) == ("e", "")


def test_a_long_answer_comes_whole() -> None:
    long = bytes(range(256)) * 40_000
    with serving([[b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(long) + long], [OK]]) as (_, pool):
        assert ask(pool) == (200, long)
        assert ask(pool) == (200, b"hi")


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    with serving([[b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\nno"]], [[OK]]) as (_, pool):
        assert ask(pool) == (403, b"no")
        assert ask(pool) == (200, b"hi")


def test_an_answer_leaves_nothing_to_the_garbage_collector() -> None:
    """Large answers that wait for it would take the memory of many."""
    with serving([[OK], [OK]]) as (_, pool):
        ask(pool)
        gc.collect()
        ask(pool)
        assert gc.collect() == 0


def test_the_time_limit_is_for_each_piece_of_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket limits the time of one send, but a large payload takes longer on a slow line."""
    sent: list[int] = []
    send = socket.socket.sendall

    def sendall(connection: socket.socket, piece: bytes) -> None:
        sent.append(len(piece))
        send(connection, piece)

    with serving([[OK]]) as (script, pool):
        monkeypatch.setattr(socket.socket, "sendall", sendall)
        body = [bytes(2 * PIECE_BYTES + 1), b"end"]
        headers = {"Content-Length": str(sum(map(len, body)))}
        assert pool.request("PUT", "/k", body, LONG, headers=headers).status == 200
        (request,) = script.requests
        head = len(request) - sum(map(len, body))
        assert [size for size in sent if size != len(OK)] == [head + PIECE_BYTES, PIECE_BYTES, 1, 3]


def test_a_refusal_is_read_also_if_it_comes_before_the_end_of_the_body() -> None:
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\nexpired"
    with serving([[refusal]], [[OK]]) as (script, pool):
        script.reads = False
        body = bytes(64 << 20)
        answer = pool.request("PUT", "/k", [body], LONG, headers={"Content-Length": str(len(body))})
        assert answer[:2] == (403, b"expired")
        assert ask(pool) == (200, b"hi")


def test_a_connection_that_ended_while_it_idled_is_replaced() -> None:
    with serving([[OK]], [[OK]]) as (_, pool):
        assert ask(pool)[1] == b"hi"
        idle = pool._idle[0]
        assert idle.recv(1, socket.MSG_PEEK) == b""  # the server has closed it
        assert ask(pool)[1] == b"hi"


def test_a_connection_that_its_server_announces_to_close_is_replaced() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
    with serving([[closing]], [[OK]]) as (_, pool):
        assert ask(pool)[1] == b"hi"
        assert pool._idle == []
        assert ask(pool)[1] == b"hi"


@pytest.mark.parametrize("part", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", OK[:-1], b"SSH-2.0-OpenSSH\r\n"])
def test_a_partial_answer_is_an_error(part: bytes) -> None:
    with serving([[part]]) as (_, pool), pytest.raises(ConnectionError):
        ask(pool)


def test_a_silent_server_is_a_timeout(pool: ConnectionPool) -> None:
    with pytest.raises(TimeoutError):
        pool.post("/v1/hello", b"", Timeouts(TIME_S, 0.01))


def test_close_ends_current_and_later_requests(listening: socket.socket, pool: ConnectionPool) -> None:
    with under_way(listening, pool) as (_, answer):
        pool.close()
        assert isinstance(answer.exception(TIME_S), OSError)
    with pytest.raises(ConnectionAbortedError):
        ask(pool)


def test_an_answer_is_still_read_after_hanging_up(listening: socket.socket, pool: ConnectionPool) -> None:
    with under_way(listening, pool) as (theirs, answer):
        pool.hang_up()
        while theirs.recv(1000):
            pass
        theirs.sendall(OK)
        assert answer.result(TIME_S) == (200, b"hi")


def test_no_request_is_sent_after_hanging_up() -> None:
    with serving([[OK]]) as (script, pool):
        assert ask(pool)[1] == b"hi"  # on a kept connection
        pool.hang_up()
        with pytest.raises(ConnectionAbortedError):
            ask(pool)
    assert len(script.requests) == 1


def test_hanging_up_while_another_thread_connects_ends_its_request(
    pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*where: Any) -> socket.socket:
        connection = socket.create_connection(*where)
        pool.hang_up()
        return connection

    monkeypatch.setattr(connection_pool, "create_connection", connect)
    with pytest.raises(ConnectionAbortedError):
        ask(pool)


def test_an_interruption_ends_the_request_under_way_and_no_other(
    listening: socket.socket, pool: ConnectionPool
) -> None:
    interruption = Interruption()
    with under_way(listening, pool, interruption) as (theirs, answer):
        interruption.interrupt()
        assert isinstance(answer.exception(TIME_S), OSError)
        while theirs.recv(1000):  # until its end
            pass
    with under_way(listening, pool) as (theirs, answer):
        theirs.sendall(OK)
        assert answer.result(TIME_S) == (200, b"hi")


def test_an_interrupted_request_is_not_sent() -> None:
    interruption = Interruption()
    interruption.interrupt()
    with serving([[OK]]) as (script, pool):
        assert ask(pool)[1] == b"hi"
        with pytest.raises(ConnectionAbortedError):
            ask(pool, interruption)
    assert len(script.requests) == 1


def test_an_interruption_after_the_answer_leaves_the_connection_to_others() -> None:
    interruption = Interruption()
    with serving([[OK], [OK]]) as (_, pool):
        assert ask(pool, interruption)[1] == b"hi"
        interruption.interrupt()
        assert ask(pool)[1] == b"hi"


def test_https_to_a_server_without_tls_is_an_error(listening: socket.socket) -> None:
    def speak() -> None:
        with suppress(ConnectionResetError), listening.accept()[0] as theirs:
            theirs.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            while theirs.recv(1000):
                pass

    thread = threading.Thread(target=speak)
    thread.start()
    pool = ConnectionPool(f"https://127.0.0.1:{listening.getsockname()[1]}", {})
    with pytest.raises(ssl.SSLError):
        ask(pool)
    thread.join(TIME_S)
    pool.close()


@pytest.mark.parametrize("endpoint", ["", "host:1", "ftp://host", "http://", "http://h:x", "http://h:0", "http://["])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(repr(endpoint))} is not a URL of a master"):
        ConnectionPool(endpoint, {})


@pytest.mark.parametrize("token", ["x\r\nHost: y", "\N{LEFT DOUBLE QUOTATION MARK}x"])
def test_a_token_with_characters_that_no_header_has_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="line break or a character"):
        ConnectionPool("http://host", {"Authorization": f"Bearer {token}"})
