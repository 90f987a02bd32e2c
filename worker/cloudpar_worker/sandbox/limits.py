"""The kernel's limits for one executor of a shared worker, which leave enough for the agent.

For some limits the kernel counts all processes of a user together. If executors have the same user as the agent, a task
that reaches such a limit could leave nothing for the agent. So the limits of executors are lower than those of the
agent.
"""

import resource
from typing import Final

from .kernel import LINUX

FILES: Final = 8_192
"""How many descriptors each process of an executor may have open."""
_SIGNALS: Final = 4_096
"""How many signals and timers may wait for the processes of an executor's user."""
_NOTHING: Final = ("RLIMIT_CORE", "RLIMIT_MSGQUEUE", "RLIMIT_RTPRIO", "RLIMIT_NICE")
"""Limits that `limit_executor` sets to 0: for core dumps, for message queues (which outlive their process), and for
priorities above the normal one (which some systems allow to all users).
"""
_KEPT_PROCESSES: Final = 64
"""If executors have the agent's user, executors leave this many of the user's processes and threads to agent and
zygote.
"""
_KEPT_FILES: Final = 2
"""An agent may have this many times as many descriptors as an executor."""


def limit_executor(*, processes: int, file_bytes: int) -> None:
    """Limit this process, which is about to run task code, and all that it starts."""
    for name in _NOTHING:
        _limit(getattr(resource, name), 0)
    _limit(resource.RLIMIT_NOFILE, FILES)
    _limit(resource.RLIMIT_SIGPENDING, _SIGNALS)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_NPROC, processes)


def shared_processes(wanted: int) -> int:
    """Return the number of processes that the executors' shared user may have; at most `wanted`.

    The agent has the same user. If this user's processes reached the agent's own limit, the agent could start no
    further thread. So the result is at least _KEPT_PROCESSES below the agent's limit.
    """
    own = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return wanted if own == resource.RLIM_INFINITY else max(min(wanted, own - _KEPT_PROCESSES), 1)


def keep_descriptors() -> None:
    """Let this process, which is the agent, have more descriptors than an executor, if the system allows it.

    For each user the kernel counts the descriptors that are under way through sockets. If their number exceeds the
    agent's limit, the agent cannot send descriptors to a zygote, so the zygote forks no executor.
    """
    if not LINUX:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _KEPT_FILES * FILES if hard == resource.RLIM_INFINITY else min(_KEPT_FILES * FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _limit(kind: int, most: int) -> None:
    # Both the soft and the hard limit are set: task code could raise the soft limit again, up to the hard limit. The
    # hard limit can only be lowered, except by root.
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))
