"""Guarantee 18: one executor of all workers on a machine has a user id, and task code can take none away."""

import itertools
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from cloudpar_worker.sandbox import cleanup, kernel, uid_pool
from support.leases import inline, lease_of
from worker.isolation.shared import MODES, Shared
from worker.tasks import value_of

Clues = dict[str, Any]
END_S = 20.0
"""Only a hang takes this long."""
OWN_USERS = pytest.mark.skipif("own-users" not in MODES, reason="only root gives users")
SYS_ADMIN = 1 << 21


def user(_: Clues) -> int:
    return os.getuid()


def hoard(clues: Clues) -> None:
    """Take all socket names that could stand for user ids, for as long as the test runs."""
    held = []
    for number in range(uid_pool.FIRST, uid_pool.FIRST + uid_pool.NUMBER):
        with suppress(OSError):
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].bind(f"\0cloudpar-user-{number}")
    with socket.create_connection(clues["hoarded"]) as line:
        line.recv(1)


def test_g18_taking_all_socket_names_takes_no_user_ids(start: Callable[..., Shared], mode: str) -> None:
    """The next worker of this machine still gets user ids too."""
    shared = start(mode, executors=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        clues = shared.clues | {"hoarded": server.getsockname()}
        shared.master.hand_out(lease_of(hoard, 1, account="hoarder", data=inline([clues])))
        server.settimeout(END_S)
        line, _ = server.accept()
        with line:
            others = start(mode, executors=1)
            served = {value_of(others.run(lambda _: os.getpid(), account=f"account-{turn}")) for turn in range(3)}
    assert len(served) == 3


def stay(_: Clues) -> tuple[int, int, str]:
    """Leave a process and a file that outlive the executor unless they are removed."""
    pid = os.fork()
    if not pid:
        os.setsid()
        signal.pause()
    path = Path(f"/dev/shm/stays-{os.getpid()}")
    path.write_text("secret")
    return os.getuid(), pid, str(path)


@OWN_USERS
def test_g18_a_user_id_of_a_killed_zygote_is_cleaned_before_its_next_executor(start: Callable[..., Shared]) -> None:
    """A killed zygote cleans up nothing, and other workers of the machine get its user ids at once."""
    others, shared = start("own-users", executors=1), start("own-users", executors=1)
    number, left, path = value_of(shared.run(stay))
    psutil.Process(shared.clues["zygote"]).kill()
    # Without a limit: another worker of this machine may use the number for a while.
    turns = (value_of(others.run(user, account=f"account-{turn}")) for turn in itertools.count())
    assert number in turns
    with suppress(psutil.NoSuchProcess):
        psutil.Process(left).wait(END_S)
    assert not Path(path).exists()


@OWN_USERS
def test_g18_workers_of_one_machine_never_use_the_same_user_id(start: Callable[..., Shared]) -> None:
    """One worker is root's, and its executors come and go; the other is as in the container, and its executor stays."""
    shared = start("own-users", executors=1)
    others = start("own-users", executors=1, command=["-c", in_container()])
    theirs, pid = value_of(others.run(lambda _: (os.getuid(), os.getpid())))
    given = {value_of(shared.run(user, account=f"account-{turn}")) for turn in range(20)}
    assert len(given) > 1
    assert theirs not in given
    assert value_of(others.run(lambda _: os.getpid())) == pid


IN_CONTAINER = """
import ctypes, os, runpy, sys
from cloudpar_worker.sandbox import kernel

libc = ctypes.CDLL(None, use_errno=True)
def mount(*arguments):
    if libc.mount(*arguments):
        raise OSError(ctypes.get_errno(), "mount")

if {mounts}:
    if libc.unshare(0x20000):  # otherwise these mounts would change the whole machine
        raise OSError(ctypes.get_errno(), "unshare")
    mount(b"none", b"/", None, 1 << 14 | 1 << 18, None)  # private, with all below
    mount(b"none", b"/run", b"tmpfs", 0, b"mode=755")
    if {read_only}:
        mount(b"none", b"/run", None, 1 << 5 | 1, None)
    mount(b"none", b"/dev/shm", b"tmpfs", 0, b"mode=1777")
for number in range(64):
    if not kernel.NEEDED >> number & 1:
        libc.prctl(24, number, 0, 0, 0)
kernel.set_capabilities(kernel.NEEDED, kernel.NEEDED, 0)
kernel.become_with_needed(10001)
kernel.no_new_privileges()
sys.argv = ["cloudpar_worker", "--stdin"]
runpy.run_module("cloudpar_worker", run_name="__main__")
"""


def in_container(*, mounts: bool = False, read_only: bool = False) -> str:
    """An agent, started as worker/entrypoint.py starts it, with only the capabilities of the container."""
    return IN_CONTAINER.format(mounts=mounts, read_only=read_only)


@OWN_USERS
@pytest.mark.skipif(not kernel.capabilities() & SYS_ADMIN, reason="only who may mount makes a container")
@pytest.mark.parametrize(("read_only", "place"), [(False, "/run"), (True, "/dev/shm")])
def test_g18_executors_get_user_ids_in_containers_read_only_or_not(
    start: Callable[..., Shared], read_only: bool, place: str
) -> None:
    shared = start("own-users", executors=1, command=["-c", in_container(mounts=True, read_only=read_only)])
    assert value_of(shared.run(user)) >= uid_pool.FIRST
    # Other tests may have left sockets in /tmp, which the worker names.
    assert not [line for line in shared.agent.log.splitlines() if "warning" in line and "socket" not in line]
    zygote = shared.clues["zygote"]
    assert psutil.Process(zygote).uids().real == 10001
    status = Path(f"/proc/{zygote}/root{place}/cloudpar-users").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (0, 0o700)
    assert f"\nCapBnd:\t{kernel.NEEDED:016x}\n" in Path(f"/proc/{zygote}/status").read_text()


def forked(code: Callable[[], Any]) -> int:
    """Run code in a forked process and return its process id; the exit code is 0 if the code returns."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            code()
            status = 0
        finally:
            os._exit(status)
    return pid


def status_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@OWN_USERS
def test_g18_task_code_cannot_signal_the_process_that_cleans_up() -> None:
    """This holds even where tasks may send signals to all processes of their user: before Linux 6.12."""
    number = uid_pool.FIRST + uid_pool.NUMBER - 4  # the last user id that is given
    ready, done = os.pipe()

    def clears_up() -> None:
        kernel.act_as(number, uid_pool.guard_uid(number))
        os.write(done, b".")
        signal.pause()

    def attacks() -> None:
        kernel.become(number)
        for by in (signal.SIGKILL, signal.SIGSTOP):
            with pytest.raises(PermissionError):
                os.kill(cleaner, by)

    def stays() -> None:
        kernel.become(number)
        os.write(done, b".")
        signal.pause()

    def ends() -> None:
        kernel.act_as(number, uid_pool.guard_uid(number))
        cleanup.kill_own_processes()

    cleaner = forked(clears_up)
    os.read(ready, 1)
    assert status_of(forked(attacks)) == 0
    os.kill(cleaner, signal.SIGKILL)
    assert status_of(cleaner) == -signal.SIGKILL
    left = forked(stays)
    os.read(ready, 1)
    assert status_of(forked(ends)) == 0
    assert status_of(left) == -signal.SIGKILL
