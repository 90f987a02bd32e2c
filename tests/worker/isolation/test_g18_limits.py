"""Guarantee 18: limits of a user or a machine that a task uses up do not stop the agent or other accounts."""

import os
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from support.leases import inline, lease_of
from worker.isolation.shared import Shared
from worker.tasks import value_of

Clues = dict[str, Any]
END_S = 20.0
"""Only a hang takes this long."""
FEW_FILES = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
sys.argv = ["cloudpar_worker", "--stdin"]
runpy.run_module("cloudpar_worker", run_name="__main__")
"""
"""An agent that may open as many files as most systems allow a program."""


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode, executors=2, command=["-c", FEW_FILES])


def send_without_end(clues: Clues) -> None:
    """Have as many descriptors under way as the kernel allows, for as long as the test runs."""
    left, right = socket.socketpair()
    held = [os.dup(right.fileno()) for _ in range(250)]
    with socket.create_connection(clues["hoarded"]) as line:
        try:
            while True:
                socket.send_fds(left, [b"x"], held, socket.MSG_DONTWAIT)
        except OSError:
            line.sendall(b"x")
        line.recv(1)


def test_g18_descriptors_under_way_leave_other_accounts_their_executors(shared: Shared) -> None:
    """Each executor of another account is a new one, for which the agent sends descriptors to the zygote."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        clues = shared.clues | {"hoarded": server.getsockname()}
        shared.master.hand_out(lease_of(send_without_end, 1, account="hoarder", data=inline([clues])))
        server.settimeout(END_S)
        line, _ = server.accept()
        with line:
            line.settimeout(END_S)
            assert line.recv(1) == b"x"
            served = {value_of(shared.run(lambda _: os.getpid(), account=f"account-{turn}")) for turn in range(3)}
    assert len(served) == 3


def open_in_many_processes(_: Clues) -> None:
    for _number in range(40):
        if not os.fork():
            for _descriptor in range(8_000):
                os.dup(2)
            time.sleep(60)
            os._exit(0)
    time.sleep(60)


def test_g18_a_task_with_very_many_descriptors_ends_alone(shared: Shared) -> None:
    """Each process stays within its own limit, but all processes together could use up the machine's descriptors."""
    result = shared.run(open_in_many_processes)
    assert result.outcome == "crashed"
    assert "open files, pipes and sockets, over the limit" in (result.message or "")
    assert value_of(shared.run(lambda _: 1)) == 1


def many_processes(_: Clues) -> list[int]:
    """Start processes as a pool of them does: each later one inherits the pipes to the earlier ones."""
    started = [
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) for _ in range(50)
    ]
    time.sleep(0.5)  # the executor is measured meanwhile
    for each in started:
        each.communicate()
    return [each.returncode for each in started]


def test_a_task_with_some_processes_and_descriptors_runs(shared: Shared) -> None:
    assert value_of(shared.run(many_processes)) == [0] * 50
