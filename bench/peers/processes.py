"""A process with all its descendants, also those that have left its group or have lost their parent.

This module imports little, because the process of a measurement needs it before its library is imported.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

LINUX: Final = sys.platform == "linux"

SET_CHILD_SUBREAPER = 36
"""The number of an operation of prctl(2), from <linux/prctl.h>."""

ENDED_WITHIN_S = 10.0
"""How long to wait for killed processes. The kernel may be in the middle of a long operation for them."""

EXITS_WITHIN_S = 10
"""How long a process may take to exit after its work. A library may have left a thread that does not end."""

CLEANS_UP_WITHIN_S = 3.0
"""How long processes of a library may live on. Some remove files when the process that uses the files has ended."""


def adopt_orphans() -> None:
    """Become the parent of each descendant whose parent ends, as far as the system has this (Linux).

    Some libraries start processes in the background. Without this, init would become their parent, so that their
    memory would not be counted, and they would stay after a measurement that hangs.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Return the ids of the processes below a process that still run."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        if state != "Z":
            children.setdefault(int(parent), []).append(int(folder.name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def pss_bytes(root: int) -> int:
    """Return the memory of a process and its descendants; a page that several processes map counts once.

    Raises:
        PermissionError: One of them hides its memory, and this user is not root.
    """
    return sum(_pss_bytes(pid) for pid in (root, *descendants(root)))


def _pss_bytes(pid: int) -> int:
    try:
        with Path(f"/proc/{pid}/smaps_rollup").open("rb") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:")), 0)
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0
    except PermissionError as error:
        # Counted as 0, it would make the pool look smaller than it is: the pool's worker hides its memory.
        raise PermissionError(f"process {pid} hides its memory except from root. Fix: measure as root") from error


def end_descendants(root: int, grace_s: float = 0.0) -> None:
    """Kill all processes below a process, and those that they start meanwhile.

    Before, they have some seconds to end by themselves.
    """
    kill_at = time.monotonic() + grace_s
    while (living := descendants(root)) and time.monotonic() < kill_at + ENDED_WITHIN_S:
        if time.monotonic() >= kill_at:
            for pid in living:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def in_a_child(work: Callable[[], int]) -> int:
    """Do the work in a child, end all processes that it leaves behind, also after a crash, and return the exit code.

    It returns in both processes, and each must exit with the result. Both adopt orphans: the child, so that it counts
    their memory, and this process for the time after the child.
    """
    adopt_orphans()
    child = os.fork()
    if child == 0:
        adopt_orphans()
        try:
            return work()
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(EXITS_WITHIN_S)
    _, status = os.waitpid(child, 0)
    end_descendants(os.getpid(), CLEANS_UP_WITHIN_S)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        print(f"killed by signal {-code} ({signal.strsignal(-code)})", file=sys.stderr)
    return abs(code)
