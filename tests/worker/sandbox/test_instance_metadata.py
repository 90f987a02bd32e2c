"""Which services of metadata answer here."""

import selectors
import socket
import threading

import pytest

from cloudpar_worker.sandbox.instance_metadata import KNOWN, Service, answering, ports, services


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
    assert answering([Service("::1", silent.port), Service("255.255.255.255"), silent]) == []


def test_one_that_answers_late_is_waited_for_while_its_port_is_open() -> None:
    """A first packet that got lost comes again after a second."""
    at_once, late = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0), backlog=0)

    def take() -> None:
        late.accept()[0].close()

    with at_once, late, socket.create_connection(late.getsockname()):  # which fills it
        threading.Timer(0.3, take).start()
        there = [Service(*server.getsockname()) for server in (at_once, late)]
        assert answering(there) == there


def test_those_of_one_port_are_not_all_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []

    class Watched(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            waits.append(timeout)
            return super().select(timeout)

    monkeypatch.setattr("selectors.DefaultSelector", Watched)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.2", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.2", port)):
            asked = [Service("127.0.0.1", port), Service("127.0.0.2", port), Service(*server.getsockname())]
            assert answering(asked) == [asked[0], asked[2]]
    assert waits[-1] is not None
    assert waits[-1] < 1 < (waits[0] or 0)


def test_the_addresses_of_clouds() -> None:
    assert {"169.254.169.254", "fd00:ec2::254", "169.254.170.2", "169.254.170.23"} <= {each.host for each in KNOWN}
    assert ports(KNOWN) == [80]


@pytest.mark.parametrize(
    ("told", "more"),
    [
        ("", []),
        ("http://127.0.0.1:81/", [Service("127.0.0.1", 81)]),
        ("http://[::1]", [Service("::1")]),
        ("http://127.0.0.1:port", []),
        ("http://a.name", []),
        ("nonsense", []),
    ],
)
def test_one_more_may_be_named(told: str, more: list[Service]) -> None:
    assert services({"AWS_EC2_METADATA_SERVICE_ENDPOINT": told}) == [*KNOWN, *more]
