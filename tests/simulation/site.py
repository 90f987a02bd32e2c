"""A master and its workers in simulated time, without faults; it says when each task starts."""

from collections.abc import Callable

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.worker_messages import RetrieveTasks, RetrieveTasksReply
from support.world import HOUR_US, World

from .timed_world import Heard, TimedWorld
from .worker import PYTHON, Task


class Site(TimedWorld):
    """After each event, the master performs all held requests again. Times are in microseconds since the start."""

    def __init__(self, world: World, *executors: int, holds: bool = True) -> None:
        super().__init__(world)
        self.holds = holds
        self.started: dict[tuple[str, int], int] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self._task_us: dict[str, Callable[[int], int]] = {}
        self._held: list[tuple[RetrieveTasks, int, Heard]] = []
        self.add_workers(*executors)
        self.run_until(200_000)

    # time

    def run_until_started(self, package_id: str, index: int = 0) -> int:
        """Run until a task has started, and return the time."""
        while (package_id, index) not in self.started:
            self.step()
        return self.started[package_id, index]

    def run_until_done(self, package_id: str) -> int:
        while not self.world.head(package_id).life.ended:
            self.step()
        return self.now_us

    def step(self) -> None:
        """See Timeline."""
        super().step()
        self._look_again()

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

    def start_task(self, task: Task) -> int:
        """See TimedWorld."""
        duration_us = self._task_us[task.package_id](task.index)
        self.started.setdefault((task.package_id, task.index), self.now_us)
        self.ends[task.package_id, task.index] = self.now_us + duration_us
        return duration_us

    # the master, which holds retrievals

    def hold(self, request: RetrieveTasks, until_us: int, heard: Heard) -> None:
        """See TimedWorld."""
        self._held.append((request, until_us, heard))
        self.after(until_us - self.now_us, lambda: None)

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
                self.reply(heard, held)
