"""Guarantee 18: a user is one executor's, of all workers of the machine, and task code takes none from others."""

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
from worker.isolation.shared import MODES, Shared
from worker.leases import inline, lease_of
from worker.tasks import value_of

Clues = dict[str, Any]
END_S = 20.0
"""Only a hang takes so long."""
OWN_USERS = pytest.mark.skipif("own-users" not in MODES, reason="only root gives users")
SYS_ADMIN = 1 << 21


def user(_: Clues) -> int:
    return os.getuid()


def hoard(clues: Clues) -> None:
    """All names of sockets that executors' users could have, for as long as the test lasts."""
    held = []
    for number in range(uid_pool.FIRST, uid_pool.FIRST + uid_pool.NUMBER):
        with suppress(OSError):
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].bind(f"\0cloudpar-user-{number}")
    with socket.create_connection(clues["hoarded"]) as line:
        line.recv(1)


def test_g18_taking_names_takes_no_users(start: Callable[..., Shared], mode: str) -> None:
    """Not from the next worker of this machine either."""
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
    """A process and a file that outlive the executor, if nobody ends them."""
    pid = os.fork()
    if not pid:
        os.setsid()
        signal.pause()
    path = Path(f"/dev/shm/stays-{os.getpid()}")  # noqa: S108 - everybody's, by its nature
    path.write_text("secret")
    return os.getuid(), pid, str(path)


@OWN_USERS
def test_g18_a_user_of_a_killed_zygote_is_empty_for_the_next_executor(start: Callable[..., Shared]) -> None:
    """The zygote empties no sandboxes any more, and other workers of the machine get its users at once."""
    others, shared = start("own-users", executors=1), start("own-users", executors=1)
    number, left, path = value_of(shared.run(stay))
    psutil.Process(shared.clues["zygote"]).kill()
    turns = (value_of(others.run(user, account=f"account-{turn}")) for turn in range(20))
    assert number in turns
    with suppress(psutil.NoSuchProcess):
        psutil.Process(left).wait(END_S)
    assert not Path(path).exists()


@OWN_USERS
def test_g18_workers_of_one_machine_never_give_the_same_user(start: Callable[..., Shared]) -> None:
    """One of root, whose executors come and go, and one as in the container, whose executor stays."""
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
    if libc.unshare(0x20000):  # else what follows would be everybody's
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
    """The agent as worker/entrypoint.py starts it, with no capabilities but what the container is given."""
    return IN_CONTAINER.format(mounts=mounts, read_only=read_only)


@OWN_USERS
@pytest.mark.skipif(not kernel.capabilities() & SYS_ADMIN, reason="only who may mount makes a container")
@pytest.mark.parametrize(("read_only", "place"), [(False, "/run"), (True, "/dev/shm")])  # noqa: S108
def test_g18_users_are_given_whether_or_not_the_container_can_be_written(
    start: Callable[..., Shared], read_only: bool, place: str
) -> None:
    shared = start("own-users", executors=1, command=["-c", in_container(mounts=True, read_only=read_only)])
    assert value_of(shared.run(user)) >= uid_pool.FIRST
    assert "warning" not in shared.agent.log
    zygote = shared.clues["zygote"]
    assert psutil.Process(zygote).uids().real == 10001
    status = Path(f"/proc/{zygote}/root{place}/cloudpar-users").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (0, 0o700)
    assert f"\nCapBnd:\t{kernel.NEEDED:016x}\n" in Path(f"/proc/{zygote}/status").read_text()


def forked(code: Callable[[], Any]) -> int:
    """Its process id; it ends with 0 if the code comes to its end."""
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
def test_g18_whoever_clears_up_is_not_in_reach_of_what_it_ends() -> None:
    """Not even where tasks may send signals to whatever has their user: before Linux 6.12."""
    number = uid_pool.FIRST + uid_pool.NUMBER - 4  # the last that is given
    ready, told = os.pipe()

    def clears_up() -> None:
        kernel.act_as(number, uid_pool.guard_uid(number))
        os.write(told, b".")
        signal.pause()

    def attacks() -> None:
        kernel.become(number)
        for by in (signal.SIGKILL, signal.SIGSTOP):
            with pytest.raises(PermissionError):
                os.kill(cleaner, by)

    def stays() -> None:
        kernel.become(number)
        os.write(told, b".")
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
