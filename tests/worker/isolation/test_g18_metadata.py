"""Guarantee 18: task code reaches no instance metadata. For AWS, see tests/aws/test_g18_metadata.py.

The service of the machine that runs the tests may answer or not. So each worker here knows one more service, which does
answer.
"""

import errno
import pickle
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from cloudpar_worker.sandbox.instance_metadata import KNOWN, Service
from worker.isolation.probes import network
from worker.isolation.probes.probing import Clues
from worker.isolation.shared import MODES, Shared, found


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode, executors=1)


@pytest.mark.parametrize("service", KNOWN, ids=lambda service: service.host)
def test_g18_a_task_reaches_no_metadata(shared: Shared, service: Service, reached: Callable[[str], None]) -> None:
    assert not found(shared.run(network.metadata, clues={"metadata": service}))
    reached(f"metadata at {service.host} from task code, {' and '.join(MODES)}: not reached")


def test_g18_other_ports_are_open(shared: Shared) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        place = service.getsockname()
        assert found(shared.run(network.metadata, clues={"metadata": place}))
    assert not found(shared.run(network.metadata, clues={"metadata": place}))


def test_g18_the_worker_says_which_port_is_closed(shared: Shared) -> None:
    assert f"{shared.clues['metadata'][1]} (as for http://)" in shared.agent.log


@pytest.mark.parametrize("retries", [0, 1])
def test_g18_a_failed_connection_to_the_closed_port_has_a_note(shared: Shared, retries: int) -> None:
    def fetch(clues: Clues) -> object:
        try:
            return network.metadata(clues)
        except OSError as error:
            raise RuntimeError("the data set is not there") from error

    result = shared.run(fetch, retries=retries)
    assert f"{shared.clues['metadata'][1]}, because its instance metadata answers" in (result.traceback or "")
    assert pickle.loads(result.data or b"N.").__notes__[0].startswith("If this was a connection")


def test_g18_other_failures_have_no_note_about_the_port(shared: Shared) -> None:
    def read(_: Clues) -> object:
        return Path("/etc/shadow").read_text()

    def listen(_: Clues) -> object:
        raise PermissionError(errno.EPERM, "not this")

    for function in (read, listen):
        assert "connection" not in (shared.run(function).traceback or "")


def test_g18_an_exception_that_accepts_no_notes_comes_unchanged(shared: Shared) -> None:
    def refuse(clues: Clues) -> object:
        class Odd(Exception):
            def add_note(self, _: str) -> None:
                raise RuntimeError

        try:
            return network.metadata(clues)
        except OSError as error:
            error.__notes__ = "none"  # type: ignore[assignment]
            raise Odd("mine") from error

    result = shared.run(refuse)
    assert (result.outcome, (result.message or "").partition("\n")[0].rpartition(".")[2]) == ("error", "Odd: mine")
