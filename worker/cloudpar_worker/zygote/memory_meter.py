"""Measures the exact memory of an executor and of all processes that it started; shared pages do not count twice.

The kernel shows these numbers only to a process of the same user, so a child of the zygote measures. If executors have
user ids of their own, the child takes the executor's user id. If a process hides its memory, all its pages count, even
those that it shares.
"""

import mmap
import os
import platform
import signal
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from cloudpar_worker.sandbox import kernel
from cloudpar_worker.sandbox.processes import Process, processes
from cloudpar_worker.sandbox.sandboxes import Sandbox
from cloudpar_worker.sandbox.shared_memory import used_bytes

from .messages import UNKNOWN
from .shared_files import shared_bytes

_FIGURE: Final = struct.Struct("<q")
_PATIENCE_S: Final = 5
"""The zygote kills a measurement that takes longer than this, in seconds."""
_YOUNG_S: Final = 0.5
"""A process younger than this, in seconds, may still share its parent's memory."""
_KCMP: Final = 312 if platform.machine() == "x86_64" else 272
_KCMP_VM: Final = 1


class MemoryMeter:
    """Starts a child process for each measurement; the child reports its result through a shared page."""

    def __init__(self) -> None:
        self._measuring: dict[int, tuple[int, mmap.mmap, float]] = {}
        """For each measuring process: the executor id, the page with the result, and the time by which the process must
        end.
        """

    @property
    def busy(self) -> bool:
        """Whether a measurement is under way."""
        return bool(self._measuring)

    def start(self, executor_id: int, pid: int, sandbox: Sandbox | None) -> None:
        """Start a measurement of an executor's memory.

        Raises:
            OSError: The system permits no further process, or has no memory.
        """
        page = mmap.mmap(-1, mmap.PAGESIZE)
        _FIGURE.pack_into(page, 0, UNKNOWN)
        child = os.fork()
        if child:
            self._measuring[child] = executor_id, page, time.monotonic() + _PATIENCE_S
            return
        try:
            if sandbox is not None and sandbox.uid is not None:
                kernel.become(sandbox.uid)
            _FIGURE.pack_into(page, 0, memory_of(pid, sandbox))
        finally:
            os._exit(0)

    def kill_overdue(self) -> None:
        """Kill measurements that take too long. Task code may have stopped them, because it has the same user id."""
        for child, (_, _, until) in self._measuring.items():
            if time.monotonic() >= until:
                os.kill(child, signal.SIGKILL)

    def ended(self, child: int) -> tuple[int, int] | None:
        """Handle the end of a child of the zygote.

        Return the executor id and the bytes (or UNKNOWN) if the child was a measurement; otherwise None.
        """
        executor_id, page, _ = self._measuring.pop(child, (None, None, None))
        if executor_id is None or page is None:
            return None
        (figure,) = _FIGURE.unpack_from(page)
        page.close()
        return executor_id, figure


def memory_of(executor: int, sandbox: Sandbox | None) -> int:
    """Return the memory of an executor and its descendants, in bytes. Before Linux 5.9 this includes pages of files.

    If the sandbox has a user id of its own, the result is the memory of all processes of this user, and of this user's
    files in shared memory. The measuring process has the same user and does not count.
    """
    own_user = sandbox is not None and sandbox.uid is not None
    family = [each for each in _family(executor, own_user=own_user) if not _is_its_parents(each)]
    private = shared = 0
    hidden: dict[int, Process] = {}
    for process in family:
        try:
            anonymous, mapped = _parts(process.thread)
        except (FileNotFoundError, ProcessLookupError):  # the process has just ended
            continue
        except OSError:
            hidden[process.pid] = process
        else:
            private, shared = private + anonymous + process.table_bytes, shared + mapped
    private += sum(each.private_bytes for each in hidden.values() if not _may_be_its_parents(each, hidden))
    # The mapped part of the files in shared memory is in `shared` already.
    if sandbox is not None and sandbox.shared_memory is not None:
        shared = max(shared, used_bytes(sandbox.shared_memory))
    elif own_user:  # otherwise executors cannot make such files
        shared = max(shared, shared_bytes([process.thread for process in family]))
    return private + shared


def _family(executor: int, *, own_user: bool) -> Iterator[Process]:
    there = {each.pid: each for each in processes()}
    for process in there.values():
        if own_user:
            if process.user == os.getuid() and process.pid != os.getpid():
                yield process
            continue
        above: Process | None = process
        while above is not None and above.pid != executor:
            above = there.get(above.parent)
        if above is not None:
            yield process


def _is_its_parents(process: Process) -> bool:
    """Whether a process still shares its parent's memory, as each new process does for a moment after a vfork.

    The answer is False if this process may not check it.
    """
    try:
        # `process.thread` is a thread that has memory. A thread that has ended has none, and two such threads would
        # look equal.
        return kernel.syscall(_KCMP, process.thread, process.parent, _KCMP_VM, 0, 0) == 0
    except OSError:
        return False


def _may_be_its_parents(process: Process, hidden: Mapping[int, Process]) -> bool:
    """Whether a process that hides its memory may share all of it with its parent, which then counts.

    A process shares the memory of its parent only for a moment after a vfork. Until then both hide it.
    """
    parent = hidden.get(process.parent)
    return parent is not None and parent.private_bytes >= process.private_bytes and _is_young(process.pid)


def _is_young(pid: int) -> bool:
    """Whether a process is so new that it may still share its parent's memory, or has just ended."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        # The fields follow the name of the process, which is in parentheses and may contain any bytes.
        started_at = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_at < _YOUNG_S
    return True


def _parts(pid: int) -> tuple[int, int]:
    """Return a process's share of its anonymous memory, and of the shared memory that it maps, in bytes.

    A page that n processes share counts for 1/n.
    """
    with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        kib = {line.split(b":")[0]: int(line.split()[1]) for line in file if line.endswith(b"kB\n")}
    if b"Pss_Anon" not in kib:  # before Linux 5.9
        return kib[b"Pss"] + kib.get(b"SwapPss", 0) << 10, 0
    return kib[b"Pss_Anon"] + kib.get(b"SwapPss", 0) << 10, kib[b"Pss_Shmem"] << 10
