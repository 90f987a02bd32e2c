"""Connections that are kept open, with a server that answers as each test scripts it."""

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from cloudpar_protocol import line
from cloudpar_protocol.line import Answer, Interruption, Lines

TIME_S = 30.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Script:
    """Serves one connection after the other: each entry is one connection, with one answer for each request."""

    def __init__(self, *connections: list[list[bytes]]) -> None:
        self.connections = list(connections)
        self.requests: list[bytes] = []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self) -> None:
        for answers in self.connections:
            line, _ = self.listening.accept()
            with line, line.makefile("rb") as stream:
                for answer in answers:
                    head = b""
                    while not head.endswith(b"\r\n\r\n") and (more := stream.readline()):
                        head += more
                    size = int(head.lower().partition(b"content-length:")[2].split()[0])
                    self.requests.append(head + stream.read(size))
                    for part in answer:
                        line.sendall(part)


@contextmanager
def serving(*connections: list[list[bytes]], path: str = "") -> Iterator[tuple[Script, Lines]]:
    script = Script(*connections)
    lines = Lines(script.endpoint + path, {"Authorization": "Bearer x"})
    script.thread.start()
    try:
        yield script, lines
    finally:
        lines.close()
        script.listening.close()
        script.thread.join(TIME_S)


def ask(lines: Lines, interruption: Interruption | None = None) -> Answer:
    return lines.post("/v1/hello", b"body", connect_s=TIME_S, answer_s=TIME_S, interruption=interruption)


def test_a_request_is_sent_with_its_headers_and_body() -> None:
    with serving([[OK]], path="/stage/") as (script, lines):
        assert ask(lines) == Answer(200, b"hi")
        host = script.endpoint.removeprefix("http://")
    assert script.requests == [
        f"POST /stage/v1/hello HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer x\r\n".encode()
        + b"Content-Length: 4\r\n\r\nbody"
    ]


def test_a_connection_is_kept() -> None:
    with serving([[OK], [OK], [OK]]) as (_, lines):
        assert [ask(lines).body for _ in range(3)] == [b"hi"] * 3


def test_answers_come_in_any_pieces_and_in_chunks() -> None:
    chunked = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    with serving([[OK[i : i + 1] for i in range(len(OK))], [chunked]]) as (_, lines):
        assert ask(lines) == Answer(200, b"hi")
        assert ask(lines) == Answer(503, b"abc")


def test_a_connection_that_ended_while_it_idled_is_replaced() -> None:
    with serving([[OK]], [[OK]]) as (_, lines):
        assert ask(lines).body == b"hi"
        idle = lines._idle[0]
        assert idle.recv(1, socket.MSG_PEEK) == b""  # the server has closed it
        assert ask(lines).body == b"hi"


def test_a_connection_that_its_server_announces_to_close_is_replaced() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
    with serving([[closing]], [[OK]]) as (_, lines):
        assert ask(lines).body == b"hi"
        assert lines._idle == []
        assert ask(lines).body == b"hi"


@pytest.mark.parametrize("part", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", OK[:-1], b"SSH-2.0-OpenSSH\r\n"])
def test_a_partial_answer_is_an_error(part: bytes) -> None:
    with serving([[part]]) as (_, lines), pytest.raises(ConnectionError):
        ask(lines)


def test_a_silent_server_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lines = Lines(f"http://127.0.0.1:{silent.getsockname()[1]}", {})
        with pytest.raises(TimeoutError):
            lines.post("/v1/hello", b"", connect_s=TIME_S, answer_s=0.01)
        lines.close()


def test_close_ends_current_and_later_requests() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    lines = Lines(f"http://127.0.0.1:{listening.getsockname()[1]}", {})
    failed: list[OSError] = []

    def wait() -> None:
        try:
            ask(lines)
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    with listening, listening.accept()[0] as theirs:
        theirs.recv(1)
        lines.close()
        thread.join(TIME_S)
        assert failed
        with pytest.raises(ConnectionAbortedError):
            ask(lines)


def test_an_answer_is_still_read_after_hanging_up() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    lines = Lines(f"http://127.0.0.1:{listening.getsockname()[1]}", {})
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(ask(lines)))
    thread.start()
    with listening, listening.accept()[0] as theirs:
        theirs.recv(1)
        lines.hang_up()
        while theirs.recv(1000):
            pass
        theirs.sendall(OK)
        thread.join(TIME_S)
    assert answers == [Answer(200, b"hi")]
    lines.close()


def test_no_request_is_sent_after_hanging_up() -> None:
    with serving([[OK]]) as (script, lines):
        assert ask(lines).body == b"hi"  # on a kept connection
        lines.hang_up()
        with pytest.raises(ConnectionAbortedError):
            ask(lines)
    assert len(script.requests) == 1


def test_hanging_up_while_another_thread_connects_ends_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*where: Any) -> socket.socket:
        connection = socket.create_connection(*where)
        lines.hang_up()
        return connection

    monkeypatch.setattr(line, "create_connection", connect)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lines = Lines(f"http://127.0.0.1:{silent.getsockname()[1]}", {})
        with pytest.raises(ConnectionAbortedError):
            ask(lines)


def test_an_interruption_ends_the_request_under_way_and_no_other() -> None:
    interruption = Interruption()
    failed: list[OSError] = []

    def wait() -> None:
        try:
            ask(lines, interruption)
        except OSError as error:
            failed.append(error)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        lines = Lines(f"http://127.0.0.1:{listening.getsockname()[1]}", {})
        thread = threading.Thread(target=wait)
        thread.start()
        with listening.accept()[0] as theirs:
            theirs.recv(1)
            interruption.interrupt()
            thread.join(TIME_S)
            while theirs.recv(1000):  # until its end
                pass
        assert failed
        answers: list[Answer] = []
        thread = threading.Thread(target=lambda: answers.append(ask(lines)))
        thread.start()
        with listening.accept()[0] as theirs:
            theirs.recv(1)
            theirs.sendall(OK)
            thread.join(TIME_S)
        assert answers == [Answer(200, b"hi")]
    lines.close()


def test_an_interrupted_request_is_not_sent() -> None:
    interruption = Interruption()
    interruption.interrupt()
    with serving([[OK]]) as (script, lines):
        assert ask(lines).body == b"hi"
        with pytest.raises(ConnectionAbortedError):
            ask(lines, interruption)
    assert len(script.requests) == 1


def test_an_interruption_after_the_answer_leaves_the_connection_to_others() -> None:
    interruption = Interruption()
    with serving([[OK], [OK]]) as (_, lines):
        assert ask(lines, interruption).body == b"hi"
        interruption.interrupt()
        assert ask(lines).body == b"hi"


def test_https_to_a_server_without_tls_is_an_error() -> None:
    def speak() -> None:
        with suppress(ConnectionResetError), listening.accept()[0] as theirs:
            theirs.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            while theirs.recv(1000):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=speak)
        thread.start()
        lines = Lines(f"https://127.0.0.1:{listening.getsockname()[1]}", {})
        with pytest.raises(ssl.SSLError):
            ask(lines)
        thread.join(TIME_S)
    lines.close()


@pytest.mark.parametrize("endpoint", ["", "host:1", "ftp://host", "http://", "http://h:x", "http://h:0", "http://["])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(repr(endpoint))} is no URL of a master"):
        Lines(endpoint, {})


@pytest.mark.parametrize("token", ["x\r\nHost: y", "\N{LEFT DOUBLE QUOTATION MARK}x"])
def test_a_token_with_characters_that_no_header_has_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="line break or a character"):
        Lines("http://host", {"Authorization": f"Bearer {token}"})
