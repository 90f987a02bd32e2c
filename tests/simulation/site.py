"""A master and its workers in simulated time, without any trouble: tells when each task starts."""

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
from master.services.world import HOUR_US, World
from master.stores import NOW

from .worker import PYTHON, SimulatedWorker, Task

WAY_US = 1_000
"""How long a request or an answer travels between a worker and the master."""

Event = Callable[[], object]


class Site:
    """The whole deployment. Times are in microseconds since its start."""

    def __init__(self, world: World, *executors: int, holds: bool = True) -> None:
        self.world = world
        self.holds = holds
        self.now_us = 0
        self.started: dict[tuple[str, int], int] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self._task_us: dict[str, Callable[[int], int]] = {}
        self._events: list[tuple[int, int, Event]] = []
        self._numbers = count()
        self._held: list[tuple[RetrieveTasks, int, Callable[[RetrieveTasksReply], None]]] = []
        self.workers = [Worker(self, f"w{number}", each) for number, each in enumerate(executors)]
        self.run_until(200_000)

    # time

    def after(self, delay_us: int, event: Event) -> None:
        heappush(self._events, (self.now_us + delay_us, next(self._numbers), event))

    def run_until(self, at_us: int) -> None:
        while self._events and self._events[0][0] <= at_us:
            self._step()
        self._set(at_us)

    def run_until_started(self, package_id: str, index: int = 0) -> int:
        """Run until a task has started, and return the time."""
        while (package_id, index) not in self.started:
            self._step()
        return self.started[package_id, index]

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
        """Start a package whose tasks take this long."""
        package_id = self.world.start(account, tasks, python=PYTHON, **({"chunksize": None} | changes))
        self._task_us[package_id] = task_us if callable(task_us) else lambda _: task_us
        self._look_again()
        return package_id

    def next_end_us(self) -> int:
        """Return when the next of the tasks that run now ends."""
        return min(end_us for end_us in self.ends.values() if end_us > self.now_us)

    def start_task(self, package_id: str, index: int) -> int:
        """Note that a task starts, and return how long it will run."""
        duration_us = self._task_us[package_id](index)
        self.started.setdefault((package_id, index), self.now_us)
        self.ends[package_id, index] = self.now_us + duration_us
        return duration_us

    # the master's held requests

    def retrieve(self, request: RetrieveTasks, answer: Callable[[RetrieveTasksReply], None]) -> None:
        self._held.append((request, self.now_us + int(request.hold_s * 1e6), answer))
        self.after(int(request.hold_s * 1e6), lambda: None)

    def _look_again(self) -> None:
        """Perform the held requests again: retrievals first, in the order in which they came, and then peeks."""
        for each in sorted(self._held, key=lambda held: held[0].peek):
            request, until_us, answer = each
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


class Worker(SimulatedWorker):
    """One worker of a site."""

    def __init__(self, site: Site, name: str, executors: int) -> None:
        self._site = site
        self._attempts = count()
        super().__init__(name, executors, lambda: site.now_us, site.after)

    def duration_us(self, task: Task) -> int:
        """See SimulatedWorker."""
        return self._site.start_task(task.package_id, task.index)

    def request(self, instruction: do.Instruction) -> None:
        """See SimulatedWorker."""
        self._site.after(WAY_US, lambda: self._call(instruction))

    def _call(self, instruction: do.Instruction) -> None:
        master = self._site.world.worker
        match instruction:
            case do.Retrieve():
                self._retrieve(instruction)
            case do.Publish(publications=publications):
                sent = PublishResults(worker_id=self.name, executors=self.executors, publications=publications)
                published = master.publish_results(sent)
                lease_ids = list(dict.fromkeys(made.lease_id for made in publications))
                self._answer(on.Published(lease_ids, published.leases, published.hungry, 1_000, published.waiting))
            case do.Extend(leases=leases):
                extended = master.extend_leases(ExtendLeases(worker_id=self.name, leases=leases))
                self._answer(on.Extended(extended.leases, extended.hungry, extended.waiting))
            case do.GiveBackTasks(returns=returns):
                master.give_back(GiveBack(worker_id=self.name, returns=returns))
                self._answer(on.GivenBack([item.lease_id for item in returns]))

    def _retrieve(self, wanted: do.Retrieve) -> None:
        request = RetrieveTasks(
            attempt_id=f"{self.name}-{next(self._attempts)}", worker_id=self.name, executors=self.executors,
            chunks=wanted.chunks, hold_s=wanted.hold_s, pythons=wanted.pythons, set_aside=wanted.set_aside,
            besides=wanted.besides, peek=wanted.peek,
        )  # fmt: skip
        if wanted.peek:
            self._site.retrieve(request, lambda reply: self.hear(on.Peeked(reply.waiting)))
        else:
            self._site.retrieve(request, lambda reply: self._retrieved(reply, bool(wanted.besides)))

    def _retrieved(self, reply: RetrieveTasksReply, besides: bool) -> None:
        retry_us = int(reply.retry_after_s * 1e6)
        self.hear(
            on.Retrieved(reply.leases, retry_us, 1_000, besides=besides, holds=reply.holds, waiting=reply.waiting)
        )

    def _answer(self, stimulus: on.Stimulus) -> None:
        self._site.after(WAY_US, lambda: self.hear(stimulus))
