"""An executor does not outlive the processes above it, even when it hangs in C."""

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent (known by its pid) ends. Linux only.

    Elsewhere the zygote's kill at the end of the agent does it.
    """
    if sys.platform != "linux":
        return
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it ended before the kernel was told


def offer_to_the_oom_killer() -> None:
    """When memory runs out, let the kernel take this process rather than the agent."""
    show_memory()  # or this file would be root's; `hide_memory` comes later
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write("500")


def hide_memory() -> None:
    """Keep other processes of this user, task code among them, from reading this one's memory and environment."""
    if sys.platform == "linux":
        _prctl(_PR_SET_DUMPABLE, 0)


def show_memory() -> None:
    """Let other processes of this user read this one's."""
    if sys.platform == "linux":
        _prctl(_PR_SET_DUMPABLE, 1)


def _prctl(option: int, argument: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(argument), 0, 0, 0)
