"""Which services of metadata answer here."""

import errno
import socket

import pytest

from cloudpar_worker.executor.metadata import KNOWN, Service, answering, ports, services


@pytest.fixture
def silent() -> Service:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Service(*server.getsockname())


def test_those_that_take_a_connection_answer(silent: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        there = [Service(*server.getsockname()) for server in (first, second)]
        assert answering([there[0], silent, there[1]]) == there
        assert ports(there) == sorted(service.port for service in there)


def test_what_cannot_be_asked_does_not_answer(silent: Service) -> None:
    assert answering([Service("not a name"), Service("::1", silent.port), silent]) == []


def test_without_a_network_it_may_answer_later(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unconnected(socket.socket):
        def connect_ex(self, _: object) -> int:
            return errno.ENETUNREACH

    monkeypatch.setattr("socket.socket", Unconnected)
    assert answering(KNOWN) == [service for service in KNOWN if ":" not in service.host]


@pytest.mark.parametrize(
    ("told", "more"),
    [
        ("", []),
        ("http://127.0.0.1:81/", [Service("127.0.0.1", 81)]),
        ("http://[::1]", [Service("::1")]),
        ("http://127.0.0.1:port", []),
        ("nonsense", []),
    ],
)
def test_one_more_may_be_named(told: str, more: list[Service]) -> None:
    assert services({"AWS_EC2_METADATA_SERVICE_ENDPOINT": told}) == [*KNOWN, *more]
