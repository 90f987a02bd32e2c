"""Decides whether to restart a master or an agent that has ended on this machine."""

import signal
import time
from collections.abc import Container

MOST, WITHIN_S = 5, 20.0
"""A process that fails this many times within this many seconds is not restarted."""

OWN_ERRORS = range(1, 128)
"""Exit statuses with which a process reports its own failure. If a process ends with another status, such as that of a
signal, the policy assumes that another process has ended it.
"""


class RestartPolicy:
    """Decides about the restarts of one child.

    Args:
        runs_tasks: Whether the child is an agent.
        must_start: If True, the child is restarted only after one of its processes was ready. A child that was never
            ready would end the same way again.
        final: Exit statuses after which the child is not restarted.
    """

    def __init__(self, *, runs_tasks: bool = False, must_start: bool = False, final: Container[int] = ()) -> None:
        self._runs_tasks = runs_tasks
        self._must_start = must_start
        self._final = final
        self._times: list[float] = []

    def allow(self, code: int, *, was_ready: bool) -> bool:
        """Decide whether to restart the process after it has ended.

        An agent that was ready and then ended without a failure of its own (OWN_ERRORS) was most likely killed by a
        task. Such an agent is restarted, unless its status is in `final`, and its earlier failures no longer count. The
        restarts do not go on without end, because a task that has killed its agent a few times fails with `TaskLost`.

        Args:
            code: The exit status; negative for a signal.
            was_ready: Whether the process had reported that it was ready.

        >>> agent = RestartPolicy(runs_tasks=True)
        >>> [agent.allow(-9, was_ready=True) for _ in range(6)]
        [True, True, True, True, True, True]
        >>> [agent.allow(1, was_ready=True) for _ in range(5)]
        [True, True, True, True, False]
        >>> RestartPolicy(must_start=True).allow(1, was_ready=False)
        False
        """
        self._must_start = self._must_start and not was_ready
        if self._must_start or code in self._final:
            return False
        if self._runs_tasks and was_ready and code not in OWN_ERRORS:
            self._times.clear()
            return True
        now = time.monotonic()
        self._times = [death for death in self._times if now - death < WITHIN_S] + [now]
        return len(self._times) < MOST


def fate(code: int) -> str:
    """Say in words how a process ended.

    >>> fate(3), fate(-9)
    ('exit status 3', 'killed by SIGKILL')
    >>> fate(-40)
    'killed by signal 40'
    """
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"killed by signal {-code}"
