"""Hosts whose agents run the real state machine; their tasks only take time."""

from collections.abc import Callable
from typing import Any

from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.routes import Route
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import ExecutorResult
from simulation.worker import Executor, SimulatedWorker
from support.backends import WORKER_TOKEN

from .services import Deployment

REQUEST_US = 40_000
READ_US = 50_000
"""The agent reads the results of short tasks in batches. A batch has the tasks that an executor runs in READ_US
microseconds.
"""

RETRY_US = 1_000_000


class Tally:
    """The work of all executors together.

    Attributes:
        busy: How many executors run a task now.
        tasks: How many tasks have ended.
        first_us, last_us: When the first and the last worker began their first task, in simulated microseconds.
    """

    def __init__(self) -> None:
        self.busy = self.tasks = self.first_us = self.last_us = 0


class Host(SimulatedWorker):
    """One host with one agent."""

    request_us = REQUEST_US

    def __init__(self, deployment: Deployment, tally: Tally, name: str, executors: int, task_us: int) -> None:
        self._deployment = deployment
        self._tally = tally
        self._task_us = task_us
        self._worked = False
        clock = deployment.schedule
        super().__init__(
            name, executors, lambda: clock.now_us, clock.after, ask=self._ask_later, start=lambda _task: task_us
        )

    def _ask_later(self, route: Route[Any, Any], request: Any, heard: Callable[[Any], object]) -> None:
        self._deployment.schedule.spawn(lambda: self._send(route, request, heard))

    def _send(self, route: Route[Any, Any], request: Any, heard: Callable[[Any], object]) -> None:
        """Send a request until the master answers it."""
        while True:
            try:
                reply = self._deployment.ask(WORKER_TOKEN, route, request)
            except RequestError:
                self._deployment.meter.add("refused")
                self._deployment.schedule.sleep(RETRY_US)
                continue
            heard(reply)
            return

    def run(self, number: int) -> None:
        """Run the tasks whose results the agent reads together: one, or several short ones."""
        executor = self._processes[number]
        if executor.running or not executor.fed:
            return
        skips = executor.hole[0] <= executor.started < executor.hole[1]
        if skips:
            super().run(number)
            return
        left = executor.hole[0] - executor.started if executor.started < executor.hole[0] else len(executor.fed)
        tasks = max(1, min(len(executor.fed), left, READ_US // self._task_us))
        executor.running = True
        executor.started += tasks
        self._begin(1)
        self._deployment.schedule.after(tasks * self._task_us, lambda: self._read(number, executor, tasks))

    def _begin(self, executors: int) -> None:
        tally, now_us = self._tally, self._deployment.schedule.now_us
        tally.busy += executors
        if not self._worked:
            self._worked = True
            tally.first_us, tally.last_us = tally.first_us or now_us, now_us

    def _read(self, number: int, executor: Executor, tasks: int) -> None:
        self._tally.busy -= 1
        if self._processes.get(number) is not executor:
            return  # the agent has killed the executor meanwhile
        self._tally.tasks += tasks
        results = [
            ExecutorResult(executor.fed.popleft().index, "ok", self._task_us, data=b"8 bytes.") for _ in range(tasks)
        ]
        executor.running = False
        self.hear(on.Results(number, results, self._now_us()))
        if self._processes.get(number) is executor:
            self.run(number)
