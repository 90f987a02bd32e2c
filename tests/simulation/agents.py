"""Workers of the whole system: their requests go over the simulated network, and their tasks may end them."""

import zlib
from functools import partial
from typing import TYPE_CHECKING

from cloudpar_protocol import routes
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    LeaseRef,
    LeaseView,
    Publication,
    PublishResults,
    PublishResultsReply,
    RetrieveTasks,
    Return,
)
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import UNFIT, ExecutorResult
from cloudpar_worker.core.publishing import requests
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
        self._attempts = 0
        super().__init__(name, executors, lambda: system.schedule.now_us, system.schedule.after)

    def vanish(self) -> None:
        """End with the whole host."""
        self._system.books.say(f"{self.name} vanishes")
        self.gone = True
        self._system.network.silence(self.name)

    # The master's answers, as cloudpar_worker.shell.master_io brings them.

    def request(self, instruction: do.Instruction) -> None:
        """See SimulatedWorker."""
        spawn = self._system.schedule.spawn
        match instruction:
            case do.Retrieve():
                spawn(partial(self._retrieve, instruction))
            case do.Publish(publications=publications):
                spawn(partial(self._publish, publications))
            case do.Extend(leases=leases):
                spawn(partial(self._extend, leases))
            case do.GiveBackTasks(returns=returns):
                spawn(partial(self._give_back, returns))
            case do.Exit():
                self._system.books.say(f"{self.name} has drained")
                self.gone = True

    def _retrieve(self, wanted: do.Retrieve) -> None:
        self._attempts += 1
        request = RetrieveTasks(
            attempt_id=f"{self.name}-{self._attempts}", worker_id=self.name, executors=self.executors,
            chunks=wanted.chunks, host=wanted.host, pythons=wanted.pythons, set_aside=wanted.set_aside,
        )  # fmt: skip
        reply = self._system.network.ask(self.name, WORKER_TOKEN, routes.RETRIEVE_TASKS, request)
        self.hear(on.Retrieved(reply.leases, round(reply.retry_after_s * 1e6), 1_000))

    def _publish(self, publications: list[Publication]) -> None:
        views: dict[str, LeaseView] = {}
        hungry = False
        for part in requests(publications):
            request = PublishResults(worker_id=self.name, executors=self.executors, publications=part)
            reply: PublishResultsReply = self._system.network.ask(
                self.name, WORKER_TOKEN, routes.PUBLISH_RESULTS, request
            )
            views.update({view.lease_id: view for view in reply.leases})
            hungry = reply.hungry
        lease_ids = list(dict.fromkeys([made.lease_id for made in publications]))
        self.hear(on.Published(lease_ids, list(views.values()), hungry, 1_000))

    def _extend(self, leases: list[LeaseRef]) -> None:
        request = ExtendLeases(worker_id=self.name, leases=leases)
        try:
            reply = self._system.network.ask(self.name, WORKER_TOKEN, routes.EXTEND_LEASES, request, repeat=False)
        except (RequestError, Unanswered):
            self.hear(on.Extended([]))
        else:
            self.hear(on.Extended(reply.leases, reply.hungry))

    def _give_back(self, returns: list[Return]) -> None:
        request = GiveBack(worker_id=self.name, returns=returns)
        self._system.network.ask(self.name, WORKER_TOKEN, routes.GIVE_BACK, request)
        self.hear(on.GivenBack([item.lease_id for item in returns]))

    # Tasks.

    def duration_us(self, task: Task) -> int:
        """See SimulatedWorker."""
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
