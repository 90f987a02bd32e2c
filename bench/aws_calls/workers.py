"""Agents with simulated executors: the real state machine, and a master that takes a while to answer."""

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from cloudpar_protocol import routes
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.worker_messages import ExtendLeases, GiveBack, PublishResults, RetrieveTasks
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.core.facts import NEVER
from cloudpar_worker.core.publishing import requests
from cloudpar_worker.core.state import WorkerState

from .clock import Clock
from .master import WORKER, Master

ROUND_TRIP_US = 30_000
READ_US = 50_000
"""The agent reads the results of short tasks together, this long after it fed them."""

RESULT = b"8 bytes."
PYTHON = "3.11"


class _Executor:
    def __init__(self) -> None:
        self.fed: deque[int] = deque()
        self.reading = False
        self.began_us = 0


class Agent:
    """A worker whose tasks all have the same duration."""

    def __init__(self, clock: Clock, master: Master, name: str, executors: int, task_us: int) -> None:
        self._clock = clock
        self._master = master
        self._name = name
        self._size = executors
        self._task_us = task_us
        self._numbers = count()
        self._seals: Seals | None = None
        self._executors: dict[int, _Executor] = {}
        self._waked_us = 0
        self._state = WorkerState(executors=executors, memory_bytes=2**40, pythons=[PYTHON])
        self._state.facts.measure_at_us = NEVER  # the simulated executors have no memory to measure
        self._handle(on.TimePassed())

    def _handle(self, stimulus: on.Stimulus) -> None:
        for instruction in self._state.handle(stimulus, self._clock.now_us):
            self._carry_out(instruction)
        deadline_at_us = self._state.deadline_at_us
        if not self._clock.now_us < self._waked_us <= deadline_at_us:
            self._waked_us = max(deadline_at_us, self._clock.now_us + 1)
            self._clock.at(self._waked_us, self._wake)

    def _wake(self) -> None:
        if self._clock.now_us >= self._state.deadline_at_us:
            self._handle(on.TimePassed())
        elif self._waked_us <= self._clock.now_us:
            self._waked_us = self._state.deadline_at_us
            self._clock.at(self._waked_us, self._wake)

    def _soon(self, stimulus: on.Stimulus, delay_us: int = ROUND_TRIP_US) -> None:
        self._clock.after(delay_us, lambda: self._handle(stimulus))

    def _carry_out(self, instruction: do.Instruction) -> None:
        match instruction:
            case do.Spawn(executor_id=number):
                self._executors[number] = _Executor()
                self._soon(on.ExecutorReady(number), 1_000)
            case do.Feed(executor_id=number, tasks=(start, end)):
                self._feed(number, start, end)
            case do.Recall() | do.CheckRecall() | do.Measure() | do.Discard() | do.Forget():
                pass
            case do.Retrieve(chunks=chunks, besides=besides):
                self._retrieve(chunks, besides)
            case do.Publish():
                self._publish(instruction)
            case do.Extend(leases=leases):
                request = ExtendLeases(worker_id=self._name, leases=leases)
                with self._master.counts.during("extend"):
                    reply = self._master.call(WORKER, routes.EXTEND_LEASES, request)
                self._soon(on.Extended(reply.leases, reply.hungry, reply.waiting))
            case do.GiveBackTasks(returns=returns):
                with self._master.counts.during("give back"):
                    self._master.call(WORKER, routes.GIVE_BACK, GiveBack(worker_id=self._name, returns=returns))
                self._soon(on.GivenBack([each.lease_id for each in returns]))
            case _:
                raise AssertionError(instruction)

    def _retrieve(self, chunks: int, besides: list[str]) -> None:
        request = RetrieveTasks(
            attempt_id=f"{self._name}#{next(self._numbers)}",
            worker_id=self._name,
            executors=self._size,
            chunks=chunks,
            besides=besides,
        )
        counts = self._master.counts
        with counts.during("retrieve") as made:
            reply = self._master.call(WORKER, routes.RETRIEVE_TASKS, request)
        if not (reply.leases or besides):
            for what, number in made.items():
                counts.of["retrieve", what] -= number
                counts.of["idle polls", what] += number
        for lease in reply.leases:
            assert lease.seal_key is not None
            self._seals = Seals(lease.seal_key, lease.package_id)
        retry_us = round(reply.retry_after_s * 1e6)
        self._soon(on.Retrieved(reply.leases, retry_us, ROUND_TRIP_US, besides=bool(besides), waiting=reply.waiting))

    def _publish(self, instruction: do.Publish) -> None:
        views: list[Any] = []
        hungry = waiting = False
        for part in requests(instruction.publications):
            request = PublishResults(worker_id=self._name, executors=self._size, publications=part)
            with self._master.counts.during("publish"):
                self._master.counts.add("chunks", sum(each.closes for each in part))
                reply = self._master.call(WORKER, routes.PUBLISH_RESULTS, request)
            views, hungry, waiting = views + reply.leases, reply.hungry, reply.waiting
        lease_ids = list(dict.fromkeys(made.lease_id for made in instruction.publications))
        self._soon(on.Published(lease_ids, views, hungry, ROUND_TRIP_US, waiting))

    # executors

    def _feed(self, number: int, start: int, end: int) -> None:
        executor = self._executors[number]
        if not executor.fed:
            executor.began_us = self._clock.now_us
        executor.fed.extend(range(start, end))
        if not executor.reading:
            executor.reading = True
            self._clock.at(executor.began_us + self._until(executor), self._reader(number))

    def _until(self, executor: _Executor) -> int:
        """Return when the agent reads the results of what it fed: those of short tasks together."""
        tasks = max(1, min(len(executor.fed), READ_US // self._task_us))
        return tasks * self._task_us

    def _reader(self, number: int) -> Callable[[], None]:
        def read() -> None:
            executor = self._executors[number]
            done = min(len(executor.fed), (self._clock.now_us - executor.began_us) // self._task_us)
            results = [ExecutorResult(executor.fed.popleft(), "ok", self._task_us, data=RESULT) for _ in range(done)]
            assert self._seals is not None  # compressed seals would change the counted bytes
            executor.began_us += done * self._task_us
            executor.reading = bool(executor.fed)
            if executor.fed:
                self._clock.at(executor.began_us + self._until(executor), read)
            self._handle(on.Results(number, self._seals.sealed(results), self._clock.now_us))

        return read
