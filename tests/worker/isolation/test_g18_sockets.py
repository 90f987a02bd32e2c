"""Guarantee 18: a worker says which sockets of other programs its tasks can reach, and closes them where it can."""

import socket
import tempfile
from collections.abc import Callable

import pytest

from cloudpar_worker.sandbox import landlock
from worker.isolation.probes.probing import Clues
from worker.isolation.shared import Shared, found


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode, executors=1)


def others(clues: Clues) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(clues["public"])
        return True


def own(_: Clues) -> bool:
    path = tempfile.mkdtemp() + "/socket"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as connection:
        server.bind(path)
        server.listen()
        connection.connect(path)
        return True


def test_g18_a_socket_that_tasks_can_reach_is_reported(shared: Shared) -> None:
    is_open = shared.mode == "own-users" and landlock.version() < landlock.RESOLVING
    assert found(shared.run(others)) is is_open
    assert ("without sockets of other programs out of reach (tasks can connect to" in shared.agent.log) is is_open


def test_g18_a_task_reaches_its_own_sockets_if_it_may_make_some(shared: Shared) -> None:
    assert found(shared.run(own)) is (shared.mode == "own-users")
