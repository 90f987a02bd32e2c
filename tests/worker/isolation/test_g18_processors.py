"""Guarantee 18: a task gets no larger part of the processors by more processes or threads, at its neighbours' cost."""

import hashlib
import os
import resource
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from cloudpar_protocol import nesting
from cloudpar_worker.sandbox import kernel
from cloudpar_worker.zygote.cpu_share import LAST, niceness
from support.leases import inline, lease_of
from support.waiting import until
from worker.isolation.probes.probing import Clues
from worker.isolation.shared import MODES, Shared
from worker.isolation.test_g18_users import in_container
from worker.tasks import value_of

BUSY = 40
BUSY_S = 120.0
ENOUGH = niceness(BUSY // 2)
"""The niceness that is reached for certain: not all busy threads are found busy at one moment."""
ROOT = 1 << 21 | 1 << 23
"""The capabilities with which a zygote may raise the priority of executors again."""
USUAL = os.getpriority(os.PRIO_PROCESS, 0)
"""The niceness with which the tests run, and so the worker and the main threads of its executors."""
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


IN_CONTAINER = "in-container"
"""As in the worker's container: executors have users of their own, but the zygote is not root."""


@pytest.fixture(scope="module", params=[*MODES, *([IN_CONTAINER] if "own-users" in MODES else [])])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], place: str) -> Shared:
    if place == IN_CONTAINER:
        return start("own-users", executors=1, memory_mb=4_000, command=["-c", in_container()])
    return start(place, executors=1, memory_mb=4_000)


def hog(clues: Clues) -> None:
    """Start busy processes, each in a session of its own; report their ids, and wait for the end of the test."""
    started = []
    for _ in range(BUSY):
        pid = os.fork()
        if not pid:
            os.setsid()
            ends_at = time.monotonic() + BUSY_S  # a test run that is killed leaves it
            while time.monotonic() < ends_at:
                pass
            os._exit(0)
        started.append(pid)
    with socket.create_connection(clues["reports"]) as line:
        line.sendall(" ".join(map(str, [os.getpid(), *started])).encode() + b"\n")
        line.recv(1)
    raise SystemExit


def crowd(clues: Clues) -> None:
    """Compute in many threads at a time, without Python's lock."""

    def compute() -> None:
        while True:
            hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)

    for _ in range(BUSY):
        threading.Thread(target=compute, daemon=True).start()
    with socket.create_connection(clues["reports"]) as line:
        line.sendall(f"{os.getpid()}\n".encode())
        line.recv(1)
    os._exit(1)


def reported(server: socket.socket) -> tuple[socket.socket, list[int]]:
    line, _ = server.accept()
    with line.makefile() as text:
        return line, list(map(int, text.readline().split()))


def session_niceness(pid: int) -> int:
    return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])


def thread_niceness(pid: int) -> dict[int, int]:
    """The niceness of each thread but the main one."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        if thread.name != str(pid):
            found[int(thread.name)] = int((thread / "stat").read_text().rpartition(")")[2].split()[16])
    return found


def test_g18_busy_processes_of_a_task_together_weigh_like_one(shared: Shared, place: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        shared.master.hand_out(lease_of(hog, 1, data=inline([{"reports": server.getsockname()}])))
        line, (executor, *started) = reported(server)
    with line:
        processes = [psutil.Process(pid) for pid in started]
        until(lambda: all(each.nice() >= min(USUAL + ENOUGH, 19) for each in processes))
        # With autogroup, niceness only counts inside of a session. Without root, sessions of hidden processes stay.
        if place != "one-user" and AUTOGROUP.exists() and AUTOGROUP.read_text() == "1\n":
            # The kernel lets only root change many sessions in a row; for other users it takes its time.
            enough = all if place == "own-users" else any
            until(lambda: enough(session_niceness(pid) >= ENOUGH for pid in started))
            assert session_niceness(executor) == 0
        assert psutil.Process(executor).nice() == USUAL


def test_g18_busy_threads_of_a_task_together_weigh_like_one(shared: Shared) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        shared.master.hand_out(lease_of(crowd, 1, account="crowd", data=inline([{"reports": server.getsockname()}])))
        line, (executor,) = reported(server)
    with line:
        until(lambda: sum(each >= min(USUAL + ENOUGH, 19) for each in thread_niceness(executor).values()) >= BUSY)
        assert psutil.Process(executor).nice() == USUAL


def says_that_it_waits(clues: Clues) -> None:
    """Compute, and say that the task waits for tasks of its own, until the end of the test."""
    executor = nesting.here()
    assert executor
    executor.begins_to_wait(object())
    with socket.create_connection(clues["reports"]) as line:
        line.sendall(f"{os.getpid()}\n".encode())
        line.setblocking(False)
        ends_at = time.monotonic() + BUSY_S
        while time.monotonic() < ends_at:
            try:
                line.recv(1)
            except BlockingIOError:
                continue
            return


@pytest.mark.skipif(kernel.capabilities() & ROOT != ROOT, reason="only root may raise a priority again")
def test_g18_tasks_that_compute_and_say_that_they_wait_together_weigh_like_one(
    start: Callable[..., Shared],
) -> None:
    shared = start("own-users", executors=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        data = inline([{"reports": server.getsockname()}])
        shared.master.hand_out(lease_of(says_that_it_waits, 1, data=data))
        first_line, (first,) = reported(server)
        shared.master.hand_out(lease_of(says_that_it_waits, 1, data=data, depth=1))
        second_line, (second,) = reported(server)
    with second_line:
        with first_line:
            until(lambda: [psutil.Process(each).nice() for each in (first, second)] == [USUAL, LAST])
            if AUTOGROUP.exists() and AUTOGROUP.read_text() == "1\n":
                assert (session_niceness(first), session_niceness(second)) == (0, LAST)
        until(lambda: psutil.Process(second).nice() == USUAL)
        if AUTOGROUP.exists():
            assert session_niceness(second) == 0


def limits(_: Clues) -> list[Any]:
    return [resource.getrlimit(kind) for kind in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO)]


def test_g18_a_task_cannot_raise_its_priority(shared: Shared) -> None:
    assert value_of(shared.run(limits)) == [(0, 0), (0, 0)]
