"""A master that holds requests and its workers, in simulated time without any trouble: when does which task begin?"""

from collections import deque
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    PublishResults,
    RetrieveTasks,
    RetrieveTasksReply,
)
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import SKIPPED, ExecutorResult
from cloudpar_worker.core.facts import NEVER
from cloudpar_worker.core.state import WorkerState
from master.services.world import HOUR_US, World
from master.stores import NOW

WAY_US = 1_000
"""From a worker to the master, and back."""

FORK_US = 20_000
PYTHON = "3.11"

Event = Callable[[], object]


class Executor:
    """A process that runs tasks in order."""

    def __init__(self) -> None:
        self.fed: deque[tuple[str, int]] = deque()
        self.begun = 0
        self.running = False
        self.hole = (0, 0)


class Site:
    """Everything. Times are microseconds since its beginning."""

    def __init__(self, world: World, *executors: int, holds: bool = True) -> None:
        self.world = world
        self.holds = holds
        self.now_us = 0
        self.begun: dict[tuple[str, int], int] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self._task_us: dict[str, Callable[[int], int]] = {}
        self._events: list[tuple[int, int, Event]] = []
        self._numbers = count()
        self._held: list[tuple[Worker, RetrieveTasks, int, Callable[[RetrieveTasksReply], None]]] = []
        self.workers = [Worker(self, f"w{number}", each) for number, each in enumerate(executors)]
        self.run_until(200_000)

    # time

    def after(self, delay_us: int, event: Event) -> None:
        heappush(self._events, (self.now_us + delay_us, next(self._numbers), event))

    def run_until(self, at_us: int) -> None:
        while self._events and self._events[0][0] <= at_us:
            self._step()
        self._set(at_us)

    def run_until_begun(self, package_id: str, index: int = 0) -> int:
        """Returns when the task began."""
        while (package_id, index) not in self.begun:
            self._step()
        return self.begun[package_id, index]

    def run_until_done(self, package_id: str) -> int:
        while not self.world.head(package_id).life.ended:
            self._step()
        return self.now_us

    def _step(self) -> None:
        at_us, _, event = heappop(self._events)
        self._set(at_us)
        event()
        self._look_again()

    def _set(self, at_us: int) -> None:
        self.now_us = at_us
        self.world.clock.time = NOW + at_us / 1e6

    # the client

    def account(self, name: str) -> AccountRecord:
        return self.world.account(name, 1_000 * HOUR_US)

    def start(
        self, account: AccountRecord, tasks: int, task_us: int | Callable[[int], int], **changes: int | None
    ) -> str:
        """Start a package whose tasks take so long."""
        package_id = self.world.start(account, tasks, python=PYTHON, **({"chunksize": None} | changes))
        self._task_us[package_id] = task_us if callable(task_us) else lambda _: task_us
        self._look_again()
        return package_id

    def next_end_us(self) -> int:
        """When the next of the tasks that run now ends."""
        return min(end_us for end_us in self.ends.values() if end_us > self.now_us)

    def task_us(self, package_id: str, index: int) -> int:
        return self._task_us[package_id](index)

    # the master's held requests

    def retrieve(self, worker: "Worker", request: RetrieveTasks, answer: Callable[[RetrieveTasksReply], None]) -> None:
        self._held.append((worker, request, self.now_us + int(request.hold_s * 1e6), answer))
        self.after(int(request.hold_s * 1e6), lambda: None)

    def _look_again(self) -> None:
        """Retrievals first, in the order in which they came; then those that peek."""
        for each in sorted(self._held, key=lambda held: held[1].peek):
            _, request, until_us, answer = each
            reply = self.world.worker.retrieve_tasks(request)
            if reply.leases or reply.waiting or not self.holds or self.now_us >= until_us:
                self._held.remove(each)
                held = RetrieveTasksReply(
                    leases=reply.leases,
                    waiting=reply.waiting,
                    holds=self.holds and request.hold_s > 0,
                    retry_after_s=0.0 if self.holds else reply.retry_after_s,
                )
                self.after(WAY_US, partial(answer, held))


class Worker:
    """The real state machine of an agent, and simulated executors."""

    def __init__(self, site: Site, name: str, executors: int) -> None:
        self.name = name
        self._site = site
        self._executors = executors
        self._attempts = count()
        self._processes: dict[int, Executor] = {}
        self._waked_us = -1
        self.state = WorkerState(executors=executors, memory_bytes=2**40, pythons=[PYTHON])
        self.state.facts.measure_at_us = NEVER
        site.after(0, lambda: self.hear(on.TimePassed()))

    def hear(self, stimulus: on.Stimulus) -> None:
        now_us = self._now_us()
        for instruction in self.state.handle(stimulus, now_us):
            self._carry_out(instruction)
        deadline_at_us = max(self.state.deadline_at_us, now_us + 1)
        if not now_us < self._waked_us <= deadline_at_us and deadline_at_us < NEVER:
            self._waked_us = deadline_at_us
            self._site.after(deadline_at_us - now_us, self._wake)

    def _wake(self) -> None:
        if self._now_us() >= self.state.deadline_at_us:
            self.hear(on.TimePassed())
        elif self._waked_us <= self._now_us():
            self._waked_us = self.state.deadline_at_us
            self._site.after(self._waked_us - self._now_us(), self._wake)

    def _now_us(self) -> int:
        return self._site.now_us + 1_000_000

    def _carry_out(self, instruction: do.Instruction) -> None:
        site = self._site
        match instruction:
            case do.Spawn(executor_id=number):
                self._processes[number] = Executor()
                site.after(FORK_US, lambda: self.hear(on.ExecutorReady(number)))
            case do.Kill(executor_id=number):
                site.after(1_000, lambda: self._end(number))
            case do.Feed(executor_id=number, lease=lease, tasks=(start, end)):
                self._processes[number].fed.extend((lease.package_id, index) for index in range(start, end))
                self._run(number)
            case do.Recall(executor_id=number, first=first, end=end):
                self._processes[number].hole = first, end
            case do.CheckRecall(executor_id=number):
                site.after(1_000, lambda: self.hear(on.RecallChecked(number, self._processes[number].begun)))
            case _:
                site.after(WAY_US, lambda: self._call(instruction))

    def _call(self, instruction: do.Instruction) -> None:
        match instruction:
            case do.Retrieve(besides=besides, peek=peek):
                request = RetrieveTasks(
                    attempt_id=f"{self.name}-{next(self._attempts)}",
                    worker_id=self.name,
                    executors=self._executors,
                    chunks=instruction.chunks,
                    hold_s=instruction.hold_s,
                    pythons=instruction.pythons,
                    set_aside=instruction.set_aside,
                    besides=besides,
                    peek=peek,
                )
                if peek:
                    self._site.retrieve(self, request, lambda reply: self.hear(on.Peeked(reply.waiting)))
                else:
                    self._site.retrieve(self, request, lambda reply: self._retrieved(reply, bool(besides)))
            case do.Publish(publications=publications):
                sent = PublishResults(worker_id=self.name, executors=self._executors, publications=publications)
                published = self._site.world.worker.publish_results(sent)
                lease_ids = list(dict.fromkeys(made.lease_id for made in publications))
                self._answer(on.Published(lease_ids, published.leases, published.hungry, 1_000, published.waiting))
            case do.Extend(leases=leases):
                extended = self._site.world.worker.extend_leases(ExtendLeases(worker_id=self.name, leases=leases))
                self._answer(on.Extended(extended.leases, extended.hungry, extended.waiting))
            case do.GiveBackTasks(returns=returns):
                self._site.world.worker.give_back(GiveBack(worker_id=self.name, returns=returns))
                self._answer(on.GivenBack([item.lease_id for item in returns]))

    def _retrieved(self, reply: RetrieveTasksReply, besides: bool) -> None:
        retry_us = int(reply.retry_after_s * 1e6)
        self.hear(
            on.Retrieved(reply.leases, retry_us, 1_000, besides=besides, holds=reply.holds, waiting=reply.waiting)
        )

    def _answer(self, stimulus: on.Stimulus) -> None:
        self._site.after(WAY_US, lambda: self.hear(stimulus))

    def _run(self, number: int) -> None:
        executor = self._processes[number]
        if executor.running or not executor.fed:
            return
        package_id, index = executor.fed[0]
        skipped = executor.hole[0] <= executor.begun < executor.hole[1]
        executor.begun += 1
        executor.running = True
        if not skipped:
            self._site.begun.setdefault((package_id, index), self._site.now_us)
            self._site.ends[package_id, index] = self._site.now_us + self._site.task_us(package_id, index)
        task_us = 0 if skipped else self._site.task_us(package_id, index)
        self._site.after(task_us, lambda: self._done(number, executor, task_us, skipped))

    def _done(self, number: int, executor: Executor, task_us: int, skipped: bool) -> None:
        if self._processes.get(number) is not executor:
            return
        _, index = executor.fed.popleft()
        executor.running = False
        result = ExecutorResult(index, SKIPPED if skipped else "ok", max(task_us, 1), data=b"value")
        self.hear(on.Results(number, [result], self._now_us() - 1))
        if number in self._processes:
            self._run(number)

    def _end(self, number: int) -> None:
        if self._processes.pop(number, None) is not None:
            self.hear(on.ExecutorGone(number, -9))
