"""How much memory executors use, with what they started.

A look costs the agent some microseconds, and more only if an executor started something or has shared memory: its
memory is bounded then, and where that is much the zygote weighs it.
"""

import time
from collections.abc import Callable, Collection
from typing import Final

import psutil

from cloudpar_worker.core import stimuli as on
from cloudpar_worker.zygote.messages import UNKNOWN

from .executor_process import ExecutorProcess
from .process_tree import Families
from .zygotes import Zygotes

_HARMLESS_PART: Final = 0.25
"""Of the limit: so much is not looked at closely. An executor has at least this much (nesting.HELD_PART)."""
_REST: Final = 10
"""So many times as long as weighing took, it is not done again: it costs at most a tenth of a core an executor."""


class Measuring:
    """Of all executors of an agent.

    Args:
        limit_bytes: Of one executor.
        on_stimulus: Takes what was found, at once or when the zygote has answered.
    """

    def __init__(self, zygotes: Zygotes, limit_bytes: int, on_stimulus: Callable[[on.Measured], None]) -> None:
        self._zygotes = zygotes
        self._limit_bytes = limit_bytes
        self._on_stimulus = on_stimulus
        self._families = Families()
        self._weighing: dict[int, tuple[float, int, int]] = {}
        """When it began, its own memory and at most how much, by executor."""
        self._rests_until: dict[int, float] = {}

    def look(self, wanted: Collection[ExecutorProcess], alive: Collection[ExecutorProcess]) -> None:
        """At some of those that are alive."""
        families = self._families.look({each.pid for each in alive if each.pid})
        for process in wanted:
            try:
                own = bound = process.resident_bytes()
            except psutil.NoSuchProcess:
                own = bound = 0
            except psutil.Error:
                own, bound = 0, self._limit_bytes
            bound += self._families.bound(process.pid, families.get(process.pid, ()))
            if bound == own or bound < self._limit_bytes * _HARMLESS_PART:
                self._tell(process, bound)
            else:
                self._weigh(process, own, bound)

    def _weigh(self, process: ExecutorProcess, own: int, bound: int) -> None:
        executor_id, now = process.executor_id, time.monotonic()
        if executor_id in self._weighing or now < self._rests_until.get(executor_id, 0.0):
            self._tell(process, own)
            return
        self._weighing[executor_id] = now, own, bound
        self._zygotes.weigh(process.python, executor_id)

    def weighed(self, process: ExecutorProcess, figure: int) -> None:
        """The zygote's answer."""
        began, own, bound = self._weighing.pop(process.executor_id, (0.0, 0, 0))
        now = time.monotonic()
        self._rests_until[process.executor_id] = now + _REST * (now - began)
        self._tell(process, bound if figure == UNKNOWN else max(own, figure))

    def ended(self, executor_id: int) -> None:
        """An executor."""
        self._weighing.pop(executor_id, None)
        self._rests_until.pop(executor_id, None)

    def _tell(self, process: ExecutorProcess, memory_bytes: int) -> None:
        self._on_stimulus(on.Measured(process.executor_id, memory_bytes, process.output_bytes()))
