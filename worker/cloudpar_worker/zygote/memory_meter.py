"""The exact memory of an executor with all processes that it started; pages shared after a fork are not counted twice.

Only a process of the same user may read these figures, so a child of the zygote measures. Where executors have their
own user ids, the child takes the executor's. A process that hides its memory counts in full.
"""

import mmap
import os
import platform
import signal
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from cloudpar_worker.sandbox import kernel
from cloudpar_worker.sandbox.processes import Process, processes
from cloudpar_worker.sandbox.sandboxes import SHARED_MEMORY, Sandbox

from .messages import UNKNOWN

_FIGURE: Final = struct.Struct("<q")
_PATIENCE_S: Final = 5
"""How long a measurement may take, in seconds."""
_YOUNG_S: Final = 0.5
"""A process younger than this may still share its parent's memory."""
_KCMP: Final = 312 if platform.machine() == "x86_64" else 272
_KCMP_VM: Final = 1


class MemoryMeter:
    """Starts a child process for each measurement; the child reports the figure through a shared page."""

    def __init__(self) -> None:
        self._measuring: dict[int, tuple[int, mmap.mmap, float]] = {}
        """For each measuring process: the executor id, the page, and the time by which it must end."""

    @property
    def busy(self) -> bool:
        """Whether a measurement is under way."""
        return bool(self._measuring)

    def start(self, executor_id: int, pid: int, sandbox: Sandbox | None) -> None:
        """Start to measure an executor.

        Raises:
            OSError: There is no process or no memory for it.
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
            _FIGURE.pack_into(page, 0, memory_of(pid, own_user=sandbox is not None and sandbox.uid is not None))
        finally:
            os._exit(0)

    def kill_overdue(self) -> None:
        """Kill measurements that take too long: task code has the same user id, so it may have stopped them."""
        for child, (_, _, until) in self._measuring.items():
            if time.monotonic() >= until:
                os.kill(child, signal.SIGKILL)

    def ended(self, child: int) -> tuple[int, int] | None:
        """The executor id and its bytes, or UNKNOWN, if this child was a measurement."""
        executor_id, page, _ = self._measuring.pop(child, (None, None, None))
        if executor_id is None or page is None:
            return None
        (figure,) = _FIGURE.unpack_from(page)
        page.close()
        return executor_id, figure


def memory_of(executor: int, *, own_user: bool) -> int:
    """The memory, without pages of files, of the executor and its descendants; with `own_user`, of its user."""
    family = [each for each in _family(executor, own_user=own_user) if not _is_its_parents(each)]
    private = shared = 0
    for process in family:
        try:
            anonymous, mapped = _parts(process.pid)
        except (FileNotFoundError, ProcessLookupError):  # the process has just ended
            continue
        except OSError:
            private += 0 if _is_young(process.pid) else process.private_bytes
        else:
            private, shared = private + anonymous, shared + mapped
    if own_user:  # only then may executors write there; the mapped part of these files is in `shared` already
        shared = max(shared, _files(process.pid for process in family))
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
    """Whether a process still shares its parent's memory, as a starting program does for a moment (vfork)."""
    try:
        return kernel.syscall(_KCMP, process.pid, process.parent, _KCMP_VM, 0, 0) == 0
    except OSError:
        return False


def _is_young(pid: int) -> bool:
    """Whether a process is so new that it may still share its parent's memory, where that cannot be checked."""
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        started_at = int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_at < _YOUNG_S
    return True


def _parts(pid: int) -> tuple[int, int]:
    """The anonymous memory of a process, and the mapped shared memory."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        kib = {line.split(":")[0]: int(line.split()[1]) for line in file if line.endswith("kB\n")}
    if "Pss_Anon" not in kib:  # before Linux 5.9
        return kib["Pss"] + kib.get("SwapPss", 0) << 10, 0
    return kib["Pss_Anon"] + kib.get("SwapPss", 0) << 10, kib["Pss_Shmem"] << 10


def _files(pids: Iterable[int]) -> int:
    """The size of this user's files in shared memory, also of those without a name that its processes hold open."""
    held: dict[int, int] = {}
    device = os.stat(SHARED_MEMORY).st_dev
    for _, _, names, folder in os.fwalk(SHARED_MEMORY):
        for name in names:
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if status.st_uid == os.getuid():
                    held[status.st_ino] = 512 * status.st_blocks
    for pid in pids:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for descriptor in descriptors:
                with suppress(OSError):
                    status = descriptor.stat()
                    if status.st_dev == device:
                        held[status.st_ino] = 512 * status.st_blocks
    return sum(held.values())
