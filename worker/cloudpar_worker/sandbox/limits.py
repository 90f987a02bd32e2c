"""The kernel's limits of one executor of a shared worker, and what the worker keeps for itself.

Some limits count what all processes of a user have together. If executors share one user with the agent, a task that
used up such a figure would leave nothing to the agent. So executors may have less of it than the agent.
"""

import resource
from typing import Final

from .kernel import LINUX

FILES: Final = 8_192
"""How many descriptors each process of an executor may have open."""
_SIGNALS: Final = 4_096
"""How many signals and timers may wait for the processes of an executor's user."""
_NOTHING: Final = ("RLIMIT_CORE", "RLIMIT_MSGQUEUE", "RLIMIT_RTPRIO", "RLIMIT_NICE")
"""What executors may not have: core dumps; message queues, which outlive their process; and a higher priority than
others, which some systems allow to all users.
"""
_KEPT_PROCESSES: Final = 64
"""How many processes and threads of a user stay free for the agent and the zygote, if executors have the same user."""
_KEPT_FILES: Final = 2
"""An agent may have more descriptors than an executor by this factor."""


def limit_executor(*, processes: int, file_bytes: int) -> None:
    """Limit this process, which is about to run task code, and all that it starts."""
    for name in _NOTHING:
        _limit(getattr(resource, name), 0)
    _limit(resource.RLIMIT_NOFILE, FILES)
    _limit(resource.RLIMIT_SIGPENDING, _SIGNALS)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_NPROC, processes)


def shared_processes(wanted: int) -> int:
    """How many processes the user of all executors may have, if `wanted` would be enough for them.

    The kernel gives the agent no thread if its user has as many processes as the agent's own limit allows.
    """
    own = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return wanted if own == resource.RLIM_INFINITY else max(min(wanted, own - _KEPT_PROCESSES), 1)


def keep_descriptors() -> None:
    """Let this process, which is the agent, have more descriptors than an executor, if the system allows it.

    The kernel counts for each user the descriptors that are under way through sockets. If they are more than the
    sender's limit, the agent cannot send descriptors to a zygote, which then forks no executor.
    """
    if not LINUX:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _KEPT_FILES * FILES if hard == resource.RLIM_INFINITY else min(_KEPT_FILES * FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))
