"""Workers of the whole system: their requests go over the simulated network, and their tasks may end them."""

import zlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudpar_protocol import routes
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import ExtendLeasesReply
from cloudpar_worker.core.executor_result import UNFIT, ExecutorResult
from support.backends import WORKER_TOKEN

from .network import Unanswered
from .worker import SimulatedWorker, Task

if TYPE_CHECKING:
    from .system import System

KILL_US = 20_000
IMPORT_US = 5_000
"""How long an import takes that fails."""
SEGFAULT = -11


class Agent(SimulatedWorker):
    """One worker. It may vanish without a message to the master."""

    def __init__(self, system: "System", name: str, executors: int) -> None:
        self._system = system
        schedule = system.schedule
        super().__init__(
            name, executors, lambda: schedule.now_us, schedule.after, ask=self._send, start=self._duration_us
        )

    def vanish(self) -> None:
        """End with the whole host."""
        self._system.books.say(f"{self.name} vanishes")
        self.gone = True
        self._system.network.silence(self.name)

    def leave(self) -> None:
        """See SimulatedWorker."""
        self._system.books.say(f"{self.name} has drained")
        super().leave()

    def _send(self, route: Route[Any, Any], request: Any, heard: Callable[[Any], object]) -> None:
        self._system.schedule.spawn(partial(self._call, route, request, heard))

    def _call(self, route: Route[Any, Any], request: Any, heard: Callable[[Any], object]) -> None:
        beats = route is routes.EXTEND_LEASES  # a beat is not repeated: the next one comes soon
        try:
            reply = self._system.network.ask(self.name, WORKER_TOKEN, route, request, repeat=not beats)
        except (RequestError, Unanswered):
            if not beats:
                raise
            reply = ExtendLeasesReply(leases=[])
        heard(reply)

    # Tasks.

    def _duration_us(self, task: Task) -> int:
        duration_us = self._system.work.duration_us(task.package_id)
        return min(duration_us, IMPORT_US) if self._fails_to_import(task) else duration_us

    def result(self, number: int, task: Task, duration_us: int) -> ExecutorResult | None:
        """See SimulatedWorker."""
        if self._system.work.kills_host(task.package_id, task.index):
            self.vanish()
            return None
        if self._system.work.kills_executor(task.package_id, task.index):
            self.end(number, SEGFAULT)
            return None
        if self._fails_to_import(task):
            return ExecutorResult(task.index, UNFIT, duration_us, message="no module named 'numpy'")
        return super().result(number, task, duration_us)

    def kill_us(self) -> int:
        """See SimulatedWorker."""
        return self._system.schedule.about(KILL_US)

    def _fails_to_import(self, task: Task) -> bool:
        """Whether this worker lacks a module that a package needs: often one worker does, sometimes all do."""
        lacks = zlib.crc32(f"{self.name} {task.package_id}".encode()) % 5 == 0
        return lacks and task.elsewhere
