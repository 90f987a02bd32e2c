"""Guarantee 18: the memory limit covers an executor with all processes that it started, and counts no page twice."""

import ctypes
import itertools
import mmap
import multiprocessing
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudpar_worker.sandbox import kernel
from support.leases import inline, lease_of
from worker.isolation.shared import Shared
from worker.isolation.test_g18_users import OWN_USERS, in_container
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


KEPT: list[mmap.mmap] = []


def page_tables(_: Clues) -> None:
    """Read pages that were never written: all of them are one page of zeros, but each 2 MB need a page table."""
    for _number in range(4):
        zeros = mmap.mmap(-1, 50 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
        KEPT.append(zeros)
        for place in range(0, len(zeros), 2 << 20):
            assert zeros[place] == 0
    time.sleep(STAYS_S)


def young_chain(_: Clues) -> None:
    """Hold memory in processes that hide it, each of which ends soon after it has started the next."""
    if not os.fork():
        kernel.prctl(4, 0)
        held = mmap.mmap(-1, LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        until = time.monotonic() + STAYS_S
        for place in itertools.count(step=2 << 20):
            if place % (32 << 20) == 0:  # 32 MB take much less than the time for which a process counts as young
                time.sleep(0.1)
                if os.fork():
                    os._exit(0)
            if place < LARGE:
                held[place : place + (2 << 20)] = bytes(2 << 20)
            elif time.monotonic() > until:
                os._exit(0)
    time.sleep(STAYS_S)


def page_tables_of_a_child(clues: Clues) -> None:
    if not os.fork():
        page_tables(clues)
    time.sleep(STAYS_S)


@pytest.mark.parametrize(
    "task",
    [
        program, fork, many, daemon, hidden, strangely_named, without_first_thread, page_tables, page_tables_of_a_child,
        young_chain,
    ],
)  # fmt: skip
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


def mapped_file(_: Clues) -> int:
    """Read a large file by a mapping, as `numpy.memmap` does. The kernel frees such pages when it needs memory."""
    with tempfile.TemporaryFile() as file:
        for _number in range(LARGE >> 20):
            file.write(bytes(1 << 20))
        file.flush()
        pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        total = sum(pages[place] for place in range(0, len(pages), mmap.PAGESIZE))
        time.sleep(2)
    return total


def test_pages_of_a_mapped_file_are_no_memory_of_the_executor(own: Shared) -> None:
    assert value_of(own.run(mapped_file)) == 0


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


def unnamed(clues: Clues) -> None:
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


def flat_empty(_: Clues) -> None:
    for number in range(MEMORY_MB << 8):
        Path(f"/dev/shm/memory-{os.getpid()}-{number}").touch()
    time.sleep(STAYS_S)


def beyond_the_end(clues: Clues) -> None:
    """Use memory beyond the end of the task's output file, where it does not count as output."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.fallocate(1, 1, ctypes.c_long(0), ctypes.c_long(LARGE)) == 0
    time.sleep(STAYS_S)


def keep(file: Any) -> None:
    """Fill a file beyond the limit, but not beyond the space of an executor's own file system."""
    with file:
        for _number in range(250):
            file.write(bytes(1 << 20))
        file.flush()
        time.sleep(STAYS_S)


def pieces(keep: Callable[[Any], object]) -> None:
    """Fill files without a name, each below the limit, and let `keep` take the place of the descriptor."""
    for number in range(5):
        path = Path(f"/dev/shm/memory-{os.getpid()}-{number}")
        with path.open("w+b") as file:
            path.unlink()
            for _mb in range(50):
                file.write(bytes(1 << 20))
            file.flush()
            keep(file)
    time.sleep(STAYS_S)


def under_way(_: Clues) -> None:
    """Hold files only by messages that no process has received."""
    one, two = socket.socketpair()
    pieces(lambda file: socket.send_fds(one, [b"."], [file.fileno()]))
    two.close()


def partly_mapped(_: Clues) -> None:
    """Hold files only by a mapping of their first page. The module mmap would also keep a descriptor."""
    libc = ctypes.CDLL(None)
    pieces(lambda file: libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0))


def hidden_holder(_: Clues) -> None:
    """Hold files in a process that hides what it holds."""
    if not os.fork():
        kernel.prctl(4, 0)
        held: list[int] = []
        pieces(lambda file: held.append(os.dup(file.fileno())))
    time.sleep(STAYS_S)


def holder_without_first_thread(_: Clues) -> None:
    """Hold files in a process whose first thread has ended, so that the kernel shows no descriptors of it."""
    if not os.fork():
        held: list[int] = []
        ended = threading.Event()

        def holds() -> None:
            ended.wait(0.5)
            pieces(lambda file: held.append(os.dup(file.fileno())))

        threading.Thread(target=holds).start()
        kernel.syscall(60 if platform.machine() == "x86_64" else 93, 0)  # exit, which ends one thread
    time.sleep(STAYS_S)


UNNAMED = [unnamed, under_way, partly_mapped, hidden_holder, holder_without_first_thread]


@pytest.mark.parametrize("task", [named, empty, *UNNAMED])
def test_g18_files_in_shared_memory_count(shared: Shared, mode: str, task: Callable[[Clues], None]) -> None:
    # Where executors have one user, a process that a task starts gets the error.
    outcome = shared.run(task, account="files", task_timeout_s=STAYS_S / 2).outcome
    assert outcome == "memory" if mode == "own-users" else outcome in {"error", "timeout"}


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


@pytest.fixture(scope="module")
def contained(start: Callable[..., Shared]) -> Shared:
    """A worker as in its container: executors share the file system of shared memory."""
    return start("own-users", executors=1, memory_mb=MEMORY_MB, command=["-c", in_container()])


@OWN_USERS
@pytest.mark.parametrize("task", [many, flat_empty, *(task for task in UNNAMED if task is not partly_mapped)])
def test_g18_an_agent_without_rights_to_executors_knows_their_memory(
    contained: Shared, task: Callable[[Clues], None]
) -> None:
    assert contained.run(task, account="files", task_timeout_s=STAYS_S / 2).outcome == "memory"
    assert value_of(contained.run(lambda _: 1, account="other")) == 1


def locks_beside_unnamed_files(clues: Clues) -> bool:
    """Have a lock, which is a file that is mapped and has no name, while another account has large unnamed files."""
    with multiprocessing.get_context("fork").Lock():
        held = b"x" * (100 << 20)
        time.sleep(1)  # several measurements
        return bool(held)


def hold_unnamed(clues: Clues) -> None:
    with Path(f"/dev/shm/memory-{os.getpid()}").open("wb") as file:
        Path(file.name).unlink()
        file.write(bytes(100 << 20))
        file.flush()
        with socket.create_connection(clues["holds"]) as line:
            line.recv(1)


@OWN_USERS
def test_g18_a_task_with_a_lock_is_not_charged_for_unnamed_files_of_another_account(
    start: Callable[..., Shared],
) -> None:
    contained = start("own-users", executors=2, memory_mb=220, command=["-c", in_container()])
    with socket.create_server(("127.0.0.1", 0)) as server:
        clues = contained.clues | {"holds": server.getsockname()}
        holding = lease_of(hold_unnamed, 1, account="other", data=inline([clues]))
        contained.master.hand_out(holding)
        with server.accept()[0]:
            assert value_of(contained.run(locks_beside_unnamed_files)) is True
    assert contained.master.wait_for_results(1, holding.package_id)[0].outcome == "ok"


@OWN_USERS
def test_g18_an_agent_without_rights_to_executors_counts_pages_once(start: Callable[..., Shared]) -> None:
    contained = start("own-users", executors=1, memory_mb=220, command=["-c", in_container()])
    assert value_of(contained.run(family)) == 6
    assert value_of(contained.run(mapped)) == 0
