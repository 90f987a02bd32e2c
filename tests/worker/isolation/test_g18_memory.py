"""Guarantee 18: the memory limit covers an executor with all processes that it started, and counts no page twice."""

import ctypes
import mmap
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudpar_worker.sandbox import kernel
from worker.isolation.shared import Shared
from worker.tasks import value_of

Clues = dict[str, Any]
MEMORY_MB = 150
LARGE = 400 << 20
STAYS_S = 20


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode, executors=1, memory_mb=MEMORY_MB)


@pytest.fixture(scope="module")
def own(start: Callable[..., Shared]) -> Shared:
    """A worker with isolation "own"."""
    return start("one-user", isolation="own", executors=1, memory_mb=MEMORY_MB)


def program(_: Clues) -> None:
    subprocess.run([sys.executable, "-c", f"import time; held = b'x' * {LARGE}; time.sleep({STAYS_S})"], check=False)


def hold(size_bytes: int) -> None:
    """The code of a process that a task starts: it uses memory."""
    _held = b"x" * size_bytes
    time.sleep(STAYS_S)
    os._exit(0)


def children(number: int, before: Callable[[], object] = lambda: None) -> None:
    """Start processes that are large only together."""
    for _number in range(number):
        if not os.fork():
            before()
            hold(LARGE // number)
    time.sleep(STAYS_S)


def fork(_: Clues) -> None:
    children(1)


def many(_: Clues) -> None:
    """Start many processes of which none is large."""
    children(6)


def hidden(_: Clues) -> None:
    """Start a process that hides from other processes of its user."""
    children(1, lambda: kernel.prctl(4, 0))


def strangely_named(_: Clues) -> None:
    """Start a process whose name is not UTF-8 and looks like other fields of its status."""
    name = ctypes.create_string_buffer(b"\xff) R\nUid:\t0")
    children(1, lambda: kernel.prctl(15, ctypes.addressof(name)))


def daemon(_: Clues) -> None:
    """Start a process whose parent ends."""
    if not os.fork():
        os.setsid()
        if not os.fork():
            hold(LARGE)
        os._exit(0)
    time.sleep(STAYS_S)


def shared_pages(_: Clues) -> None:
    held = mmap.mmap(-1, LARGE)
    if not os.fork():
        held.write(b"x" * (LARGE // 2))
        time.sleep(STAYS_S)
        os._exit(0)
    time.sleep(STAYS_S)


def without_first_thread(_: Clues) -> None:
    """Start a process whose first thread ends: the kernel shows the process as ended, and without memory."""
    if not os.fork():
        threading.Thread(target=hold, args=[LARGE]).start()
        kernel.syscall(60 if platform.machine() == "x86_64" else 93, 0)  # exit, which ends one thread
    time.sleep(STAYS_S)


@pytest.mark.parametrize(
    "task", [program, fork, many, daemon, hidden, strangely_named, shared_pages, without_first_thread]
)
def test_g18_memory_of_processes_that_a_task_started_counts(
    shared: Shared, task: Callable[[Clues], None], mode: str
) -> None:
    result = shared.run(task)
    assert result.outcome == "memory", result
    assert f"over its limit of {MEMORY_MB} MB" in result.message
    assert value_of(shared.run(lambda _: 1)) == 1


@pytest.mark.parametrize("task", [program, fork, many, strangely_named, shared_pages])
def test_memory_of_started_processes_counts_with_isolation_own(own: Shared, task: Callable[[Clues], None]) -> None:
    assert own.run(task).outcome == "memory"


def later(_: Clues) -> int:
    """Start a process that grows after the task has ended."""
    if not os.fork():
        time.sleep(0.5)
        hold(LARGE)
    return os.getpid()


def test_g18_memory_that_grows_between_tasks_counts(shared: Shared) -> None:
    executor = value_of(shared.run(later))
    until = time.monotonic() + STAYS_S / 2
    while Path(f"/proc/{executor}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{executor}").exists()


def named(clues: Clues) -> None:
    """Use shared memory in a folder that no other user may enter."""
    folder = Path(f"/dev/shm/memory-{os.getpid()}")
    folder.mkdir()
    keep((folder / "held").open("wb"))


def nameless(clues: Clues) -> None:
    path = Path(f"/dev/shm/memory-{os.getpid()}")
    file = path.open("wb")
    path.unlink()
    keep(file)


def empty(clues: Clues) -> None:
    """Make empty files, which take memory of the kernel, and time of each program that looks for files here."""
    folder = Path(f"/dev/shm/memory-{os.getpid()}")
    folder.mkdir()
    for number in range(MEMORY_MB << 8):
        (folder / str(number)).touch()
    time.sleep(STAYS_S)


def beyond_the_end(clues: Clues) -> None:
    """Use memory beyond the end of the task's output file, where it does not count as output."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.fallocate(1, 1, ctypes.c_long(0), ctypes.c_long(LARGE)) == 0
    time.sleep(STAYS_S)


def keep(file: Any) -> None:
    with file:
        for _number in range(LARGE >> 20):
            file.write(bytes(1 << 20))
        file.flush()
        time.sleep(STAYS_S)


@pytest.mark.parametrize("task", [named, nameless, empty])
def test_g18_files_in_shared_memory_count(shared: Shared, mode: str, task: Callable[[Clues], None]) -> None:
    assert shared.run(task, account="files").outcome == ("memory" if mode == "own-users" else "error")


def test_g18_memory_beyond_the_end_of_an_output_file_counts_as_output(shared: Shared) -> None:
    result = shared.run(beyond_the_end)
    assert result.outcome == "crashed"
    assert "standard output" in result.message


def family(_: Clues) -> int:
    """Six processes that share their parent's pages; counted in full, they would exceed the limit."""
    _held = b"x" * (70 << 20)
    children = [os.fork() for _number in range(6)]
    if 0 in children:
        time.sleep(2)
        os._exit(0)
    return len([os.waitpid(child, 0) for child in children])


def starting(_: Clues) -> int:
    """Start many programs, each of which shares its parent's memory for a moment."""
    _held = b"x" * (70 << 20)
    until = time.monotonic() + 2
    started = 0
    while time.monotonic() < until:
        subprocess.run(["/bin/true"], check=True)
        started += 1
    return started


def mapped(_: Clues) -> int:
    """Use memory that two processes share and that is also a file."""
    with Path(f"/dev/shm/memory-{os.getpid()}").open("w+b") as file:
        file.truncate(80 << 20)
        held = mmap.mmap(file.fileno(), 80 << 20)
        held.write(b"x" * (80 << 20))
        child = os.fork()
        if not child:
            held[: 80 << 20]
            time.sleep(2)
            os._exit(0)
        return os.waitpid(child, 0)[1]


def test_g18_pages_of_several_processes_count_once(start: Callable[..., Shared], mode: str) -> None:
    if mode == "own-users":
        shared = start(mode, executors=1, memory_mb=220)
        assert value_of(shared.run(family)) == 6
        assert value_of(shared.run(mapped)) == 0


def test_pages_count_once_with_isolation_own(own: Shared) -> None:
    assert value_of(own.run(family)) == 6


def test_g18_starting_programs_count_no_memory_twice(shared: Shared) -> None:
    assert value_of(shared.run(starting)) > 10


AS_IN_THE_CONTAINER = """
import runpy, sys
from cloudpar_worker.sandbox.kernel import become_with_needed
become_with_needed(10001)
sys.argv = ["cloudpar_worker", "--stdin"]
runpy.run_module("cloudpar_worker", run_name="__main__")
"""


def test_g18_an_agent_without_rights_to_executors_knows_their_memory(start: Callable[..., Shared], mode: str) -> None:
    if mode == "own-users":
        shared = start(mode, executors=1, memory_mb=220, command=["-c", AS_IN_THE_CONTAINER])
        assert shared.run(many).outcome == "memory"
        assert shared.run(nameless, account="files").outcome == "memory"
        assert value_of(shared.run(family)) == 6
