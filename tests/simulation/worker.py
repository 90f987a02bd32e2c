"""A worker in simulated time: the real state machine of the agent, with simulated executors."""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from cloudpar_protocol import routes
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    ExtendLeasesReply,
    GiveBack,
    LeaseRef,
    Publication,
    PublishResults,
    PublishResultsReply,
    RetrieveTasks,
    RetrieveTasksReply,
)
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import SKIPPED, ExecutorResult
from cloudpar_worker.core.facts import NEVER
from cloudpar_worker.core.publishing import requests
from cloudpar_worker.core.state import WorkerState

PYTHON = "3.11"
START_US = 1_000_000
"""The time of a worker's own clock when the simulation starts."""

FORK_US = 20_000
LOOK_US = 1_000
SIGKILL = -9

Ask = Callable[[Route[Any, Any], Any, Callable[[Any], object]], object]
"""Sends a request to a master, and calls a function with the reply."""


class Task(Struct, frozen=True):
    """A task that was fed to an executor. `elsewhere`: another worker may have what it needs."""

    package_id: str
    index: int
    elsewhere: bool


class Executor:
    """A process that runs tasks in order.

    Attributes:
        started: How many tasks it has started, those that it skipped included.
        hole: The tasks that it skips, by the same count.
    """

    def __init__(self) -> None:
        self.fed: deque[Task] = deque()
        self.started = 0
        self.running = False
        self.hole = (0, 0)


class SimulatedWorker:
    """One worker. A subclass may say how tasks end.

    Args:
        name: Its worker id.
        executors: How many it has.
        now_us: Tells the time of the simulation.
        after: Calls a function after a delay.
        ask: Carries its requests to a master.
        start: Starts a task, and returns how long it will run.
    """

    request_us = 1_000
    """The cost of a request, as the worker measures it."""

    def __init__(
        self,
        name: str,
        executors: int,
        now_us: Callable[[], int],
        after: Callable[[int, Callable[[], object]], None],
        *,
        ask: Ask,
        start: Callable[[Task], int],
    ) -> None:
        self.name = name
        self.executors = executors
        self.gone = False
        self._simulation_us = now_us
        self._after = after
        self._ask = ask
        self._start = start
        self._attempts = count(1)
        self._processes: dict[int, Executor] = {}
        self._wakes_at_us = 0
        self._state = WorkerState(executors=executors, memory_bytes=2**40, pythons=[PYTHON], host=name)
        self._state.facts.measure_at_us = NEVER  # there is no memory to measure
        after(0, lambda: self.hear(on.TimePassed()))

    def result(self, number: int, task: Task, duration_us: int) -> ExecutorResult | None:
        """Return the result of a task at the end of its time. None: it has ended its executor or its worker."""
        del number
        return ExecutorResult(task.index, "ok", duration_us, data=b"value")

    def kill_us(self) -> int:
        """Return how long it takes to kill an executor."""
        return LOOK_US

    def hear(self, stimulus: on.Stimulus) -> None:
        """Handle a stimulus, and carry out what follows from it."""
        if self.gone:
            return
        for instruction in self._state.handle(stimulus, self._now_us()):
            self._carry_out(instruction)
        self._plan_wakeup()

    def leave(self) -> None:
        """End with the drained agent."""
        self.gone = True

    def end(self, number: int, exit_code: int) -> None:
        """End an executor."""
        if self._processes.pop(number, None) is not None:
            self.hear(on.ExecutorGone(number, exit_code))

    def _now_us(self) -> int:
        return START_US + self._simulation_us()

    def _plan_wakeup(self) -> None:
        now_us = self._now_us()
        at_us = max(self._state.deadline_at_us, now_us + 1)
        if at_us < NEVER and not now_us < self._wakes_at_us <= at_us:
            self._wakes_at_us = at_us
            self._after(at_us - now_us, self._wake)

    def _wake(self) -> None:
        if self._now_us() >= self._state.deadline_at_us:
            self.hear(on.TimePassed())
        elif not self.gone:
            self._plan_wakeup()

    def _carry_out(self, instruction: do.Instruction) -> None:
        match instruction:
            case do.Spawn(executor_id=number):
                self._processes[number] = Executor()
                self._after(FORK_US, lambda: self._if_there(number, on.ExecutorReady(number)))
            case do.Kill(executor_id=number):
                self._after(self.kill_us(), lambda: self.end(number, SIGKILL))
            case do.Feed(executor_id=number, lease=lease, tasks=(start, end)):
                tasks = (Task(lease.package_id, index, lease.elsewhere) for index in range(start, end))
                self._processes[number].fed.extend(tasks)
                self.run(number)
            case do.Recall(executor_id=number, first=first, end=end):
                self._processes[number].hole = first, end
            case do.CheckRecall(executor_id=number):
                self._after(LOOK_US, lambda: self._check_recall(number))
            case _:
                self._request(instruction)

    # The master's answers, as cloudpar_worker.shell.master_io brings them.

    def _request(self, instruction: do.Instruction) -> None:
        match instruction:
            case do.Retrieve():
                attempt_id = f"{self.name}-{next(self._attempts)}"
                request = RetrieveTasks(
                    attempt_id=attempt_id,
                    worker_id=self.name,
                    executors=self.executors,
                    offline=True,
                    **asdict(instruction),
                )
                self._ask(routes.RETRIEVE_TASKS, request, partial(self._retrieved, request))
            case do.Publish(publications=publications, others=others):
                lease_ids = list(dict.fromkeys(made.lease_id for made in publications))
                self._publish(lease_ids, list(requests(publications)), [], others)
            case do.Extend(leases=leases):
                self._ask(routes.EXTEND_LEASES, ExtendLeases(worker_id=self.name, leases=leases), self._extended)
            case do.GiveBackTasks(returns=returns):
                back = on.GivenBack([item.lease_id for item in returns])
                self._ask(routes.GIVE_BACK, GiveBack(worker_id=self.name, returns=returns), lambda _: self.hear(back))
            case do.Exit():
                self.leave()

    def _retrieved(self, request: RetrieveTasks, reply: RetrieveTasksReply) -> None:
        if request.peek:
            self.hear(on.Peeked(reply.waiting))
            return
        retry_after_us, besides = round(reply.retry_after_s * 1e6), bool(request.besides)
        self.hear(
            on.Retrieved(
                reply.leases, retry_after_us, self.request_us, besides=besides, holds=reply.holds, waiting=reply.waiting
            )
        )

    def _publish(
        self,
        lease_ids: list[str],
        parts: list[list[Publication]],
        replies: list[PublishResultsReply],
        others: list[LeaseRef] | None,
    ) -> None:
        """Publish one part after the other, and then handle all replies at once."""
        if parts:
            request = PublishResults(
                worker_id=self.name,
                executors=self.executors,
                publications=parts[0],
                seals=True,
                others=others,
            )
            go_on = partial(self._publish, lease_ids, parts[1:])
            self._ask(routes.PUBLISH_RESULTS, request, lambda reply: go_on([*replies, reply], others))
            return
        views = {view.lease_id: view for reply in replies for view in reply.leases}
        hungry, waiting = any(reply.hungry for reply in replies), any(reply.waiting for reply in replies)
        self.hear(on.Published(lease_ids, list(views.values()), hungry, self.request_us, waiting))

    def _extended(self, reply: ExtendLeasesReply) -> None:
        self.hear(on.Extended(reply.leases, reply.hungry, reply.waiting))

    # Executors.

    def _if_there(self, number: int, stimulus: on.Stimulus) -> None:
        if number in self._processes:
            self.hear(stimulus)

    def _check_recall(self, number: int) -> None:
        if number in self._processes:
            self.hear(on.RecallChecked(number, self._processes[number].started))

    def run(self, number: int) -> None:
        """Start the next task, or skip it."""
        executor = self._processes[number]
        if executor.running or not executor.fed or self.gone:
            return
        skips = executor.hole[0] <= executor.started < executor.hole[1]
        executor.started += 1
        executor.running = True
        duration_us = 0 if skips else self._start(executor.fed[0])
        self._after(max(duration_us, 1), lambda: self._finish(number, executor, duration_us, skips))

    def _finish(self, number: int, executor: Executor, duration_us: int, skips: bool) -> None:
        if self._processes.get(number) is not executor or self.gone:
            return  # the executor was killed meanwhile
        task = executor.fed[0]
        result = ExecutorResult(task.index, SKIPPED, 0) if skips else self.result(number, task, duration_us)
        if result is None:
            return
        executor.fed.popleft()
        executor.running = False
        self.hear(on.Results(number, [result], self._now_us() - 1))
        if number in self._processes:
            self.run(number)
