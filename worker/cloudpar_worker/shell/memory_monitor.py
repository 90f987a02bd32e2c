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
from .process_tree import ProcessTree
from .zygotes import Zygotes

_HARMLESS_PART: Final = 0.25
"""Of the limit: so much is not looked at closely. An executor has at least this much (nesting.HELD_PART)."""
_REST: Final = 10
"""So many times as long as weighing took, it is not done again: it costs at most a tenth of a core an executor."""


class MemoryMonitor:
    """Of all executors of an agent.

    Args:
        limit_bytes: Of one executor.
        on_stimulus: Takes what was found, at once or when the zygote has answered.
    """

    def __init__(self, zygotes: Zygotes, limit_bytes: int, on_stimulus: Callable[[on.Measured], None]) -> None:
        self._zygotes = zygotes
        self._limit_bytes = limit_bytes
        self._on_stimulus = on_stimulus
        self._process_tree = ProcessTree()
        self._pending: dict[int, tuple[float, int, int]] = {}
        """When it began, its own memory and at most how much, by executor."""
        self._next_at: dict[int, float] = {}

    def measure(self, wanted: Collection[ExecutorProcess], alive: Collection[ExecutorProcess]) -> None:
        """At some of those that are alive."""
        descendants = self._process_tree.descendants({each.pid for each in alive if each.pid})
        for process in wanted:
            try:
                own = bound = process.resident_bytes()
            except psutil.NoSuchProcess:
                own = bound = 0
            except psutil.Error:
                own, bound = 0, self._limit_bytes
            bound += self._process_tree.most_bytes(process.pid, descendants.get(process.pid, ()))
            if bound == own or bound < self._limit_bytes * _HARMLESS_PART:
                self._report(process, bound)
            else:
                self._ask_zygote(process, own, bound)

    def _ask_zygote(self, process: ExecutorProcess, own: int, bound: int) -> None:
        executor_id, now = process.executor_id, time.monotonic()
        if executor_id in self._pending or now < self._next_at.get(executor_id, 0.0):
            self._report(process, own)
            return
        self._pending[executor_id] = now, own, bound
        self._zygotes.measure(process.python, executor_id)

    def on_answer(self, process: ExecutorProcess, figure: int) -> None:
        """The zygote's answer."""
        began, own, bound = self._pending.pop(process.executor_id, (0.0, 0, 0))
        now = time.monotonic()
        self._next_at[process.executor_id] = now + _REST * (now - began)
        self._report(process, bound if figure == UNKNOWN else max(own, figure))

    def forget(self, executor_id: int) -> None:
        """An executor."""
        self._pending.pop(executor_id, None)
        self._next_at.pop(executor_id, None)

    def _report(self, process: ExecutorProcess, memory_bytes: int) -> None:
        self._on_stimulus(on.Measured(process.executor_id, memory_bytes, process.output_bytes()))
