"""Whether a process that dies is started again: the master or the agent of a pool, or of `cloudpar up`."""

import signal
import time

MOST, WITHIN_S = 5, 20.0
"""A process that dies by itself this often within this time is not started again."""

OWN_ERRORS = range(1, 128)
"""Exit statuses by which a process says that it failed, and was not ended from outside."""


class RestartPolicy:
    """Those of one process, which is started again after each.

    Args:
        runs_tasks: It is an agent.
    """

    def __init__(self, *, runs_tasks: bool = False) -> None:
        self._runs_tasks = runs_tasks
        self._times: list[float] = []

    def allow(self, code: int, *, was_ready: bool) -> bool:
        """Whether to start it again after this one.

        An agent that was ready and was ended from outside is most likely what a task took along. There may be any
        number of such tasks; each does so a few times and is then `TaskLost`, so that comes to an end without us.

        Args:
            code: Its exit status, negative for a signal.
            was_ready: Whether it had said that it could work.

        >>> agent = RestartPolicy(runs_tasks=True)
        >>> [agent.allow(-9, was_ready=True) for _ in range(6)]
        [True, True, True, True, True, True]
        >>> [agent.allow(1, was_ready=True) for _ in range(5)]
        [True, True, True, True, False]
        """
        if self._runs_tasks and was_ready and code not in OWN_ERRORS:
            self._times.clear()
            return True
        now = time.monotonic()
        self._times = [death for death in self._times if now - death < WITHIN_S] + [now]
        return len(self._times) < MOST


def fate(code: int) -> str:
    """How a process ended, for people.

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
