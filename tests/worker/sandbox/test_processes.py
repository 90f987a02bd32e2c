"""The visible processes of the machine."""

import builtins
import os
import platform
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from cloudpar_worker.sandbox import kernel
from cloudpar_worker.sandbox.processes import process_of, processes
from cloudpar_worker.zygote.memory_meter import memory_of


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError, ProcessLookupError])
def test_hidden_and_ended_processes_are_omitted(monkeypatch: pytest.MonkeyPatch, error: type[OSError]) -> None:
    """Other users' processes are hidden where /proc is mounted with hidepid=1."""
    there = builtins.open

    def other_than_ours(path: str, *arguments: Any) -> Any:
        if path == f"/proc/{os.getppid()}/status":
            raise error
        return there(path, *arguments)

    monkeypatch.setattr(builtins, "open", other_than_ours)
    found = {process.pid: process for process in processes()}
    assert os.getpid() in found
    assert os.getppid() not in found
    assert found[os.getpid()].private_bytes > 1 << 20


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a) R 1 (b", b"a\nPPid:\t1", b"a\rUid:\t9", b"PPid:\t1"])
def test_a_process_may_have_any_name(name: bytes, tmp_path: Path) -> None:
    """Task code names its processes. A name that is not UTF-8 once ended the agent."""
    program = tmp_path / os.fsdecode(name)
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as named:
        try:
            found = process_of(named.pid)
            assert found is not None
            assert (found.pid, found.parent, found.user) == (named.pid, os.getpid(), os.getuid())
            assert memory_of(named.pid, None) > 0
        finally:
            named.kill()


def test_a_process_whose_first_thread_has_ended_still_has_its_memory() -> None:
    """The kernel shows such a process as ended."""
    ready, done = os.pipe()
    child = os.fork()
    if not child:
        held = bytearray(b"x" * (50 << 20))

        def stay() -> None:
            while held:
                signal.pause()

        threading.Thread(target=stay).start()
        os.write(done, b".")
        kernel.syscall(60 if platform.machine() == "x86_64" else 93, 0)  # exit, which ends one thread
    try:
        os.read(ready, 1)
        found = process_of(child)
        while found is not None and found.thread == child:
            found = process_of(child)
        assert found is not None
        assert found.private_bytes >= 50 << 20
        assert found.descriptors > 0
        assert found.parent == os.getpid()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_process_that_has_ended_has_no_memory() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    found = process_of(child)
    os.waitpid(child, 0)
    assert found is not None
    assert (found.private_bytes, found.thread) == (0, child)


def test_a_process_has_room_for_the_descriptors_that_it_has_open() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        for _ in range(300):
            os.dup(writing)
        os.write(writing, b"x")
        signal.pause()
    try:
        os.read(reading, 1)
        found = process_of(pid)
        assert found is not None
        assert found.descriptors >= 300
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)
