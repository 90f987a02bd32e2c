"""A master and its workers in simulated time, without faults; it says when each task starts."""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol import routes
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import RetrieveTasks, RetrieveTasksReply
from support.clock import NOW
from support.world import HOUR_US, World

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
        self._held: list[tuple[RetrieveTasks, int, Callable[[Any], object]]] = []
        self.workers = [
            SimulatedWorker(f"w{number}", each, lambda: self.now_us, self.after, ask=self._send, start=self._start_task)
            for number, each in enumerate(executors)
        ]
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

    def _start_task(self, task: Task) -> int:
        duration_us = self._task_us[task.package_id](task.index)
        self.started.setdefault((task.package_id, task.index), self.now_us)
        self.ends[task.package_id, task.index] = self.now_us + duration_us
        return duration_us

    # the master, which holds retrievals

    def _send(self, route: Route[Any, Any], request: Any, heard: Callable[[Any], object]) -> None:
        self.after(WAY_US, lambda: self._arrive(route, request, heard))

    def _arrive(self, route: Route[Any, Any], request: Any, heard: Callable[[Any], object]) -> None:
        if route is routes.RETRIEVE_TASKS:
            self._held.append((request, self.now_us + int(request.hold_s * 1e6), heard))
            self.after(int(request.hold_s * 1e6), lambda: None)
        else:
            reply = getattr(self.world.worker, route.name)(request)
            self.after(WAY_US, lambda: heard(reply))

    def _look_again(self) -> None:
        """Perform the held requests again: retrievals first, in the order in which they came, and then peeks."""
        for each in sorted(self._held, key=lambda held: held[0].peek):
            request, until_us, heard = each
            reply = self.world.worker.retrieve_tasks(request)
            if reply.leases or reply.waiting or not self.holds or self.now_us >= until_us:
                self._held.remove(each)
                held = RetrieveTasksReply(
                    leases=reply.leases,
                    waiting=reply.waiting,
                    holds=self.holds and request.hold_s > 0,
                    retry_after_s=0.0 if self.holds else reply.retry_after_s,
                )
                self.after(WAY_US, partial(heard, held))
