"""Agents with simulated executors: they run the real state machine, and a request to the master takes ROUND_TRIP_US."""

from collections.abc import Callable
from typing import Any

from cloudpar_protocol import routes
from cloudpar_protocol.routes import Route
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.worker_messages import PublishResults, RetrieveTasks
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import ExecutorResult
from simulation.worker import Executor, SimulatedWorker
from support.timeline import Timeline

from .master import WORKER, Master

ROUND_TRIP_US = 30_000
READ_US = 50_000
"""The agent reads the results of short tasks in batches. A batch has the tasks that an executor runs in READ_US
microseconds.
"""

RESULT = b"8 bytes."

PURPOSES = {
    routes.RETRIEVE_TASKS.name: "retrieve",
    routes.PUBLISH_RESULTS.name: "publish",
    routes.EXTEND_LEASES.name: "extend",
    routes.GIVE_BACK.name: "give back",
}
"""The purpose under which each request of an agent is counted."""


class Agent(SimulatedWorker):
    """A worker whose tasks all have the same duration."""

    request_us = ROUND_TRIP_US

    def __init__(self, clock: Timeline, master: Master, name: str, executors: int, task_us: int) -> None:
        self._clock = clock
        self._master = master
        self._task_us = task_us
        self._seals: Seals | None = None
        super().__init__(
            name, executors, lambda: clock.now_us, clock.after, ask=self._call, start=lambda _task: task_us
        )

    def _call(self, route: Route[Any, Any], request: Any, heard: Callable[[Any], object]) -> None:
        counts, purpose = self._master.counts, PURPOSES[route.name]
        with counts.during(purpose) as made:
            if isinstance(request, PublishResults):
                counts.add("chunks", sum(each.closes for each in request.publications))
            reply = self._master.call(WORKER, route, request)
        if isinstance(request, RetrieveTasks):
            if not (reply.leases or request.besides):
                counts.move(made, purpose, "idle polls")
            for lease in reply.leases:
                assert lease.seal_key is not None
                self._seals = Seals(lease.seal_key, lease.package_id)
        self._clock.after(ROUND_TRIP_US, lambda: heard(reply))

    def run(self, number: int) -> None:
        """Run the tasks whose results the agent reads together: one, or several short ones."""
        executor = self._processes[number]
        if executor.fed and not executor.running:
            executor.running = True
            tasks = max(1, min(len(executor.fed), READ_US // self._task_us))
            self._clock.after(tasks * self._task_us, lambda: self._read(number, executor, tasks))

    def _read(self, number: int, executor: Executor, tasks: int) -> None:
        results = [ExecutorResult(executor.fed.popleft().index, "ok", self._task_us, data=RESULT) for _ in range(tasks)]
        assert self._seals is not None  # the seals must be real, because their size is among the counted bytes
        executor.running = False
        self.run(number)
        self.hear(on.Results(number, self._seals.sealed(results), self._now_us()))
