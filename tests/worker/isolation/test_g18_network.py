"""Guarantee 18: with `--network none`, a task reaches nothing but servers that its own executor has started."""

import os
import pickle
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from cloudpar_worker.sandbox import kernel
from support.leases import inline, lease_of
from support.waiting import until
from worker.isolation.probes import network
from worker.isolation.probes.probing import Clues
from worker.isolation.shared import MODES, Shared, found
from worker.isolation.test_g18_users import in_container
from worker.isolation.test_usual_code import loop
from worker.tasks import value_of

IN_CONTAINER = "in-container"
"""As in the worker's container: executors have users of their own, but only user namespaces can be made."""


@pytest.fixture(scope="module", params=[*MODES, *([IN_CONTAINER] if "own-users" in MODES else [])])
def shared(request: pytest.FixtureRequest, start: Callable[..., Shared]) -> Shared:
    if request.param == IN_CONTAINER:
        return start("own-users", network="none", command=["-c", in_container()], memory_mb=300)
    return start(request.param, network="none", memory_mb=300)


@pytest.fixture(scope="module")
def outbound(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode)


def connect(clues: Clues) -> Any:
    with socket.create_connection(clues["place"], 1.0) as connection:
        return connection.getpeername()


def test_g18_a_task_without_a_network_reaches_no_server_of_the_machine(shared: Shared) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        assert not found(shared.run(connect, clues={"place": service.getsockname()}))


def test_g18_a_task_with_a_network_reaches_a_server_of_the_machine(outbound: Shared) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        assert found(outbound.run(connect, clues={"place": service.getsockname()}))


def test_g18_a_task_without_a_network_reaches_no_metadata(shared: Shared) -> None:
    assert not found(shared.run(network.metadata))


def namespaces(_: Clues) -> dict[str, str]:
    return {kind: str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "ipc")}


def placed(_: Clues) -> tuple[int, dict[str, str]]:
    return os.getpid(), namespaces({})


def test_g18_no_two_executors_share_a_network_or_ipc_objects(shared: Shared) -> None:
    """With networks of their own they cannot reach each other's servers and abstract sockets either."""
    seen = {os.getpid(): namespaces({})}
    executors: set[int] = set()
    while len(executors) < 2:  # of one account, so that none of them ends and another one gets its numbers
        lease = lease_of(placed, 4, data=inline([{}] * 4))
        shared.master.hand_out(lease)
        seen |= map(value_of, shared.master.wait_for_results(4, lease.package_id).values())
        executors = {each.pid for each in shared.agent.descendants()} & seen.keys()
    for kind in ("net", "ipc"):
        assert len({seen[pid][kind] for pid in (os.getpid(), *executors)}) == 1 + len(executors)


@pytest.mark.skipif("own-users" not in MODES, reason="only root makes namespaces without user namespaces")
def test_g18_executors_with_a_network_have_ipc_objects_of_their_own(start: Callable[..., Shared]) -> None:
    found_there, here = value_of(start("own-users").run(namespaces)), namespaces({})
    assert found_there["ipc"] != here["ipc"]
    assert found_there["net"] == here["net"]


def test_servers_and_programs_of_a_task_work_without_a_network(shared: Shared) -> None:
    assert value_of(shared.run(loop)) == ("signal", -15, b"said\n", b"", 4)


def rights(_: Clues) -> tuple[int, int]:
    return kernel.capabilities("CapEff"), kernel.capabilities("CapPrm")


def test_g18_a_task_in_namespaces_has_no_capability(shared: Shared) -> None:
    assert value_of(shared.run(rights)) == (0, 0)


def configure(_: Clues) -> Any:
    """Stop the loopback interface, which only an administrator of the network may do."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return kernel.syscall(16 if os.uname().machine == "x86_64" else 29, any_socket.fileno(), 0x8914, b"lo" * 20)


def test_g18_a_task_cannot_configure_its_network(shared: Shared) -> None:
    assert not found(shared.run(configure))


@pytest.mark.parametrize("place", [("192.0.2.1", 443), ("example.invalid", 443)])
def test_a_failed_connection_of_a_task_without_a_network_has_a_note(shared: Shared, place: tuple[str, int]) -> None:
    error = pickle.loads(shared.run(connect, clues={"place": place}).data or b"N.")
    (note,) = error.__notes__
    assert "have no network, because its operator started it with --network none" in note


def bomb(_: Clues) -> None:
    """Use too much memory in a process that the task starts."""
    if os.fork():
        os.wait()
    held = bytearray()
    while True:
        held += os.urandom(1 << 20)


def test_g18_the_memory_of_executors_in_namespaces_is_measured(shared: Shared) -> None:
    assert shared.run(bomb).outcome == "memory"


def leave(_: Clues) -> tuple[int, str]:
    """Leave a process with a session of its own, and a file."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        os.write(writing, b".")
        signal.pause()
    os.read(reading, 1)
    path = Path(os.environ["TMPDIR"], "left")
    path.touch()
    return pid, str(path)


def test_g18_nothing_stays_of_an_executor_in_namespaces(shared: Shared) -> None:
    left, path = value_of(shared.run(leave))
    value_of(shared.run(namespaces, account="next"))
    until(lambda: not psutil.pid_exists(left))
    until(lambda: not Path(path).exists())
