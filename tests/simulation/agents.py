"""Workers: the real state machine of the agent, with simulated executors, over the simulated network."""

import zlib
from collections import deque
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
from cloudpar_worker.core.executor_result import SKIPPED, UNFIT, ExecutorResult
from cloudpar_worker.core.facts import NEVER
from cloudpar_worker.core.publishing import requests
from cloudpar_worker.core.state import WorkerState

from .clients import PYTHON
from .masters import WORKER_TOKEN
from .network import Unanswered

if TYPE_CHECKING:
    from .system import System

START_US = 1_000_000
KILL_US = 20_000
IMPORT_US = 5_000
"""How long an import takes that fails."""
SEGFAULT, SIGKILL = -11, -9


class Executor:
    """A process that runs tasks in order."""

    def __init__(self) -> None:
        self.fed: deque[tuple[str, int, bool]] = deque()
        self.begun = 0
        self.running = False
        self.hole = (0, 0)


class Agent:
    """One worker. It may end without a word."""

    def __init__(self, system: "System", name: str, executors: int) -> None:
        self.name = name
        self.gone = False
        self.executors = executors
        self._system = system
        self._attempts = 0
        self._processes: dict[int, Executor] = {}
        self._waked_us = 0
        self._state = WorkerState(executors=executors, memory_bytes=2**40, pythons=[PYTHON])
        self._state.facts.measure_at_us = NEVER  # nobody has memory to be looked at
        system.schedule.spawn(lambda: self.hear(on.TimePassed()))

    def _now_us(self) -> int:
        return START_US + self._system.schedule.now_us

    def hear(self, stimulus: on.Stimulus) -> None:
        """A stimulus, and what follows from it."""
        if self.gone:
            return
        for instruction in self._state.handle(stimulus, self._now_us()):
            self._carry_out(instruction)
        deadline_at_us = self._state.deadline_at_us
        if not self._now_us() < self._waked_us <= deadline_at_us:
            self._waked_us = max(deadline_at_us, self._now_us() + 1)
            self._system.schedule.after(self._waked_us - self._now_us(), self._wake)

    def _wake(self) -> None:
        if self._now_us() >= self._state.deadline_at_us:
            self.hear(on.TimePassed())
        elif self._waked_us <= self._now_us():
            self._waked_us = self._state.deadline_at_us
            self._system.schedule.after(self._waked_us - self._now_us(), self._wake)

    def vanish(self) -> None:
        """Its host is gone."""
        self._system.books.say(f"{self.name} vanishes")
        self.gone = True
        self._system.network.silence(self.name)

    def _carry_out(self, instruction: do.Instruction) -> None:
        schedule = self._system.schedule
        match instruction:
            case do.Spawn(executor_id=number):
                self._processes[number] = Executor()
                schedule.after(10_000, lambda: self._forked(number))
            case do.Kill(executor_id=number):
                schedule.after(schedule.about(KILL_US), lambda: self._end(number, SIGKILL))
            case do.Feed(executor_id=number, lease=lease, tasks=(start, end)):
                tasks = ((lease.package_id, index, lease.elsewhere) for index in range(start, end))
                self._processes[number].fed.extend(tasks)
                self._run(number)
            case do.Recall(executor_id=number, first=first, end=end):
                self._processes[number].hole = first, end
            case do.CheckRecall(executor_id=number):
                schedule.after(1_000, lambda: self._look(number))
            case do.Exit():
                self._system.books.say(f"{self.name} has drained")
                self.gone = True
            case _:
                self._call(instruction)

    def _call(self, instruction: do.Instruction) -> None:
        match instruction:
            case do.Retrieve():
                self._system.schedule.spawn(partial(self._retrieve, instruction))
            case do.Publish(publications=publications):
                self._system.schedule.spawn(partial(self._publish, publications))
            case do.Extend(leases=leases):
                self._system.schedule.spawn(partial(self._extend, leases))
            case do.GiveBackTasks(returns=returns):
                self._system.schedule.spawn(partial(self._give_back, returns))

    # The master's answers, as cloudpar_worker.shell.master_io brings them.

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

    # Executors.

    def _forked(self, number: int) -> None:
        if number in self._processes:
            self.hear(on.ExecutorReady(number))

    def _run(self, number: int) -> None:
        """Begin the next task, unless it is to be passed over."""
        executor = self._processes[number]
        if executor.running or not executor.fed or self.gone:
            return
        package_id, _, elsewhere = executor.fed[0]
        skipped = executor.hole[0] <= executor.begun < executor.hole[1]
        executor.begun += 1
        executor.running = True
        duration_us = 0 if skipped else self._system.work.duration_us(package_id)
        if elsewhere and self._lacks(package_id):
            duration_us = min(duration_us, IMPORT_US)
        self._system.schedule.after(max(duration_us, 1), lambda: self._done(number, executor, duration_us, skipped))

    def _done(self, number: int, executor: Executor, duration_us: int, skipped: bool) -> None:
        if self._processes.get(number) is not executor or self.gone:
            return  # it was killed meanwhile
        package_id, index, elsewhere = executor.fed.popleft()
        executor.running = False
        if not skipped and self._system.work.kills_host(package_id, index):
            self.vanish()
        elif not skipped and self._system.work.kills_executor(package_id, index):
            executor.fed.appendleft((package_id, index, elsewhere))
            self._end(number, SEGFAULT)
        else:
            result = ExecutorResult(index, SKIPPED if skipped else "ok", duration_us, data=b"value")
            if not skipped and elsewhere and self._lacks(package_id):
                result = ExecutorResult(index, UNFIT, duration_us, message="no module named 'numpy'")
            self.hear(on.Results(number, [result], self._now_us() - 1))
            if number in self._processes:
                self._run(number)

    def _lacks(self, package_id: str) -> bool:
        """Whether this worker lacks a module that a package needs: often one of them does, sometimes all do."""
        return zlib.crc32(f"{self.name} {package_id}".encode()) % 5 == 0

    def _end(self, number: int, exit_code: int) -> None:
        if self._processes.pop(number, None) is not None:
            self.hear(on.ExecutorGone(number, exit_code))

    def _look(self, number: int) -> None:
        if number in self._processes:
            executor = self._processes[number]
            self.hear(on.RecallChecked(number, executor.begun))
