"""Which metadata services answer on this machine."""

import selectors
import socket
import threading

import pytest

from cloudpar_worker.sandbox.instance_metadata import KNOWN, Service, answering, ports, services


@pytest.fixture
def silent() -> Service:
    """A port on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Service(*server.getsockname())


def test_services_that_accept_a_connection_answer(silent: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        there = [Service(*server.getsockname()) for server in (first, second)]
        assert answering([there[0], silent, there[1]]) == there
        assert ports(there) == sorted(service.port for service in there)


def test_services_that_cannot_be_reached_do_not_answer(silent: Service) -> None:
    assert answering([Service("::1", silent.port), Service("255.255.255.255"), silent]) == []


def test_a_late_service_is_awaited_while_its_port_is_open() -> None:
    """A first packet that is lost is sent again after a second."""
    at_once, late = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0), backlog=0)

    def take() -> None:
        late.accept()[0].close()

    with at_once, late, socket.create_connection(late.getsockname()):  # fills its queue of connections
        threading.Timer(0.3, take).start()
        there = [Service(*server.getsockname()) for server in (at_once, late)]
        assert answering(there) == there


def test_after_one_answer_the_others_on_its_port_are_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []

    class Watched(selectors.PollSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            waits.append(timeout)
            return super().select(timeout)

    monkeypatch.setattr("selectors.PollSelector", Watched)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.2", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.2", port)):
            asked = [Service("127.0.0.1", port), Service("127.0.0.2", port), Service(*server.getsockname())]
            assert answering(asked) == [asked[0], asked[2]]
    assert waits[-1] is not None
    assert waits[-1] < 1 < (waits[0] or 0)


def test_the_known_addresses_are_those_of_the_clouds() -> None:
    assert {"169.254.169.254", "fd00:ec2::254", "169.254.170.2", "169.254.170.23"} <= {each.host for each in KNOWN}
    assert ports(KNOWN) == [80]


@pytest.mark.parametrize(
    ("named", "more"),
    [
        ("", []),
        ("http://127.0.0.1:81/", [Service("127.0.0.1", 81)]),
        ("http://[::1]", [Service("::1")]),
        ("http://127.0.0.1:port", []),
        ("http://a.name", []),
        ("nonsense", []),
    ],
)
def test_the_environment_may_name_one_more_service(named: str, more: list[Service]) -> None:
    assert services({"AWS_EC2_METADATA_SERVICE_ENDPOINT": named}) == [*KNOWN, *more]
