"""Measures the memory of each executor, together with the processes that it started.

Measuring an executor alone takes the agent some microseconds. If the executor has started processes or uses shared
memory, the agent computes an upper bound. It requests an exact measurement from the zygote only if this bound is large.
"""

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, NamedTuple

from cloudpar_worker.core import stimuli as on
from cloudpar_worker.zygote.messages import MEASURE, UNKNOWN

from .executor_process import ExecutorProcess
from .process_tree import ProcessTree, living
from .zygotes import Zygotes

_HARMLESS_PART: Final = 0.25
"""If the upper bound is below this part of the memory limit, no exact figure is needed. While tasks wait for tasks of
their own, the limit of the other executors is lower, but never lower than this part (nesting.HELD_PART).
"""
_LONGEST: Final = 10
"""The pause after an exact measurement, as a multiple of the time that the measurement took. The exact measurements of
an executor therefore use at most 10 % of a core, or half of a core while its memory grows.
"""


class _Pause(NamedTuple):
    """The pause after an exact measurement: it is short if meanwhile the executor may have exceeded its limit.

    Task code can make a measurement slow, and then use more memory in the pause.
    """

    short_until: float
    until: float
    most_bytes: int
    """The pause is short if the upper bound has grown beyond this."""

    def holds(self, bound: int, now: float) -> bool:
        """Whether the pause lasts, with this upper bound of the executor's memory."""
        return now < (self.until if bound <= self.most_bytes else self.short_until)


class MemoryMonitor:
    """Measures all executors of an agent.

    Args:
        zygotes: The zygotes, which make exact measurements.
        limit_bytes: The memory limit of one executor.
        on_stimulus: Is called with each measurement. If the upper bound is small, the measurement contains the upper
            bound. Otherwise it contains the exact number, as soon as the zygote has answered. Until then, and in the
            pause after the answer (_Pause), measurements contain the memory of the largest process.
    """

    def __init__(self, zygotes: Zygotes, limit_bytes: int, on_stimulus: Callable[[on.Measured], None]) -> None:
        self._zygotes = zygotes
        self._limit_bytes = limit_bytes
        self._on_stimulus = on_stimulus
        self._process_tree = ProcessTree()
        self._pending: dict[int, tuple[float, int, int]] = {}
        """For each executor that a zygote is measuring: the time at which this started, the memory of the largest
        process, and the upper bound.
        """
        self._pauses: dict[int, _Pause] = {}
        self._started: dict[int, tuple[int, int]] = {}
        """For each executor, at its last measurement: the number of running processes that it had started, and the
        number of descriptors for which these processes had room.
        """

    def measure(self, wanted: Collection[ExecutorProcess], alive: Collection[ExecutorProcess]) -> None:
        """Measure the executors in `wanted`; `alive` are all executors."""
        # If tasks have used up the machine's descriptors, no file in /proc can be opened. Without `suppress` the agent
        # would end. The next measurement follows soon.
        with suppress(OSError):
            self._measure(wanted, alive)

    def _measure(self, wanted: Collection[ExecutorProcess], alive: Collection[ExecutorProcess]) -> None:
        descendants = self._process_tree.descendants({each.pid for each in alive if each.pid})
        for process in wanted:
            private = process.private_bytes()
            started = living(descendants.get(process.pid, ()))
            # The zygote measures in a process that has the executor's user. To the agent this process looks like one
            # that a task has started.
            measuring = process.executor_id in self._pending
            descriptors = sum(each.descriptors for each in started)
            self._started[process.executor_id] = max(len(started) - measuring, 0), descriptors
            more = self._process_tree.most_bytes(process.pid, started, process.shared_memory_bytes())
            bound = more + (self._limit_bytes if private is None else private)
            if (private is not None and not more) or bound < self._limit_bytes * _HARMLESS_PART:
                self._report(process, bound)
            else:
                self._ask_zygote(process, max([private or 0, *(each.private_bytes for each in started)]), bound)

    def _ask_zygote(self, process: ExecutorProcess, largest: int, bound: int) -> None:
        executor_id, now = process.executor_id, time.monotonic()
        pause = self._pauses.get(executor_id)
        if executor_id in self._pending or (pause is not None and pause.holds(bound, now)):
            self._report(process, largest)
            return
        self._pending[executor_id] = now, largest, bound
        self._zygotes.send(process.python, MEASURE, executor_id)

    def on_answer(self, process: ExecutorProcess, figure: int) -> None:
        """Report the memory that a zygote has measured, or the upper bound if the zygote could not measure."""
        started_at, largest, bound = self._pending.pop(process.executor_id, (0.0, 0, 0))
        now = time.monotonic()
        took_s = now - started_at
        room = max(self._limit_bytes - figure, 0)
        self._pauses[process.executor_id] = _Pause(now + took_s, now + _LONGEST * took_s, bound + room)
        self._report(process, bound if figure == UNKNOWN else max(largest, figure))

    def started(self, executor_id: int) -> int:
        """Return the number of running processes, at its last measurement, that an executor had started."""
        return self._started.get(executor_id, (0, 0))[0]

    def forget(self, executor_id: int) -> None:
        """Drop an executor that has ended."""
        self._pending.pop(executor_id, None)
        self._pauses.pop(executor_id, None)
        self._started.pop(executor_id, None)

    def _report(self, process: ExecutorProcess, memory_bytes: int) -> None:
        started, descriptors = self._started.get(process.executor_id, (0, 0))
        output_bytes, cpu_us = process.output_bytes(), process.cpu_us()
        self._on_stimulus(on.Measured(process.executor_id, memory_bytes, output_bytes, started, cpu_us, descriptors))
