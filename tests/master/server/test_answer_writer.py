"""What uvicorn writes for an answer, and what the transport gets of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar_master.server.answer_writer import AnswerWriter


class Transport:
    """Records what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


@pytest.fixture
def transport() -> Transport:
    return Transport()


def answering(transport: Transport, method: str = "POST", *, started: bool = True) -> tuple[Any, AnswerWriter]:
    """Return uvicorn's record of a request, and the writer of its answer."""
    cycle = SimpleNamespace(transport=transport, response_started=started, scope={"method": method})
    return cycle, AnswerWriter(cycle)


def test_the_head_is_sent_with_the_first_part_of_the_body(transport: Transport) -> None:
    _, writer = answering(transport)
    for part in (b"head", b"body", b"more"):
        writer.write(part)
    assert transport.written == [b"headbody", b"more"]


def test_an_empty_body_sends_the_head(transport: Transport) -> None:
    _, writer = answering(transport)
    writer.write(b"head")
    writer.write(b"")
    assert transport.written == [b"head"]


def test_an_answer_to_head_is_sent_at_once_because_it_has_no_body(transport: Transport) -> None:
    _, writer = answering(transport, "HEAD")
    writer.write(b"head")
    assert transport.written == [b"head"]


def test_a_note_before_the_answer_is_sent_at_once(transport: Transport) -> None:
    cycle, writer = answering(transport, started=False)
    writer.write(b"100 Continue")
    assert transport.written == [b"100 Continue"]
    cycle.response_started = True
    writer.write(b"head")
    writer.write(b"body")
    assert transport.written == [b"100 Continue", b"headbody"]


def test_a_head_without_a_body_is_sent_before_the_connection_closes(transport: Transport) -> None:
    _, writer = answering(transport)
    writer.write(b"head")
    writer.close()
    assert (transport.written, transport.closed) == ([b"head"], True)


def test_nothing_is_sent_on_a_connection_that_is_being_closed(transport: Transport) -> None:
    _, writer = answering(transport)
    writer.write(b"head")
    transport.closed = True
    writer.close()
    assert (transport.written, writer.is_closing()) == ([], True)
