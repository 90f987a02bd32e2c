"""Guarantee 18: a task of an account that may not use the network makes no sockets, beside accounts that use it."""

import errno
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import pytest

from support.leases import inline, lease_of
from worker.isolation.probes.probing import Clues
from worker.isolation.shared import Shared, found
from worker.tasks import value_of


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode)


def run(shared: Shared, function: Callable[..., Any], network: str, **clues: Any) -> Any:
    """Run a task of an account that may, or may not, use the network."""
    return shared.run(function, account="ann", network=network, clues=clues)


def connect(clues: Clues) -> Any:
    with socket.create_connection(clues["place"], 1.0) as connection:
        return connection.getpeername()


def send(clues: Clues) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"secret", clues["place"])


def connect_without_a_path(clues: Clues) -> Any:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(clues["place"])
        return "connected"


def connect_in_a_program(clues: Clues) -> Any:
    text = f"import socket; socket.create_connection({clues['place']!r}, 1.0)"
    return subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def routes(_: Clues) -> Any:
    """Ask the kernel for the machine's routes and neighbours."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as asking:
        return asking.getsockname()


TO_A_SERVER = [connect, connect_in_a_program]


@pytest.mark.parametrize("task", TO_A_SERVER)
@pytest.mark.parametrize("network", ["outbound", "none"])
def test_g18_only_a_task_that_may_use_the_network_reaches_a_server(
    shared: Shared, network: str, task: Callable[..., Any]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        assert found(run(shared, task, network, place=service.getsockname())) == (network == "outbound")


@pytest.mark.parametrize("network", ["outbound", "none"])
def test_g18_only_a_task_that_may_use_the_network_sends_a_datagram(shared: Shared, network: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as service:
        service.bind(("127.0.0.1", 0))
        assert found(run(shared, send, network, place=service.getsockname())) == (network == "outbound")


@pytest.mark.parametrize("network", ["outbound", "none"])
def test_g18_only_a_task_that_may_use_the_network_sees_the_machines_network(shared: Shared, network: str) -> None:
    assert found(run(shared, routes, network)) == (network == "outbound")


def test_g18_a_task_that_may_not_use_the_network_reaches_no_abstract_socket(shared: Shared) -> None:
    name = f"\0cloudpar-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(name)
        service.listen()
        assert not found(run(shared, connect_without_a_path, "none", place=name))


def executor(_: Clues) -> int:
    return os.getpid()


def test_g18_no_executor_changes_from_one_network_to_the_other(start: Callable[..., Shared], mode: str) -> None:
    """A task with a network may leave a connection in its executor."""
    worker = start(mode, executors=1)
    seen = [value_of(run(worker, executor, network)) for network in ("outbound", "none", "none", "outbound")]
    assert len(set(seen)) == 3
    assert seen[1] == seen[2]


def refused(_: Clues) -> int | None:
    try:
        socket.socket()
    except OSError as error:
        return error.errno
    return None


def test_a_task_that_may_not_use_the_network_gets_an_error_that_names_the_fix(shared: Shared) -> None:
    assert value_of(run(shared, refused, "none")) == errno.EPERM
    error = pickle.loads(run(shared, connect, "none", place=("127.0.0.1", 9)).data or b"N.")
    (note,) = error.__notes__
    assert "cloudpar account set --network none" in note


def usual(_: Clues) -> tuple[int, bytes, bytes]:
    """What programs use in place of a network: pipes, pairs of sockets, and programs."""
    reading, writing = socket.socketpair()
    writing.sendall(b"pair")
    ends = get_context("fork").Pipe()
    ends[0].send_bytes(b"pipe")
    return subprocess.run(["true"], check=True).returncode, reading.recv(4), ends[1].recv_bytes()


def test_pairs_of_sockets_pipes_and_programs_work_without_a_network(shared: Shared) -> None:
    assert value_of(run(shared, usual, "none")) == (0, b"pair", b"pipe")


def test_a_worker_says_that_it_can_keep_tasks_from_the_network_only_if_it_confines_them(
    shared: Shared, start: Callable[..., Shared], mode: str
) -> None:
    def says(worker: Shared) -> set[bool]:
        return {request.offline for _, route, request in worker.master.requests if route == "retrieve_tasks"}

    open_worker = start(mode, isolation="none")
    value_of(open_worker.run(executor))
    assert (says(shared), says(open_worker)) == ({True}, {False})


def test_g18_a_worker_that_confines_nothing_gives_back_tasks_that_may_not_use_the_network(
    start: Callable[..., Shared], mode: str
) -> None:
    worker = start(mode, isolation="none")
    lease = lease_of(executor, 1, account="ann", data=inline([{}]), network="none")
    worker.master.hand_out(lease)
    worker.master.wait(lambda: bool(worker.master.returns))
    (given_back,) = worker.master.returns
    assert given_back.unfit is not None
    assert "cannot keep tasks from the network" in given_back.unfit.lacks
