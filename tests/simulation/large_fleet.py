"""A master with a large fleet in simulated time: how busy one package with some long tasks keeps all executors.

Run it with other figures by PYTHONPATH=tests .venv/bin/python -m simulation.large_fleet 100 100 200000.
"""

import sys
from collections import deque
from collections.abc import Sequence
from heapq import heapreplace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cloudpar_master.core.head import stored
from cloudpar_master.ports import Sending
from cloudpar_protocol.worker_messages import RetrieveTasks, RetrieveTasksReply
from support.world import HOUR_US, World, master

from .timed_world import Heard, TimedWorld
from .worker import PYTHON, Task

SHORT_US, LONG_US = 1_000_000, 10_000_000
TICK_US = 1_000_000
"""The time between two ticks of the master's timer, which also wakes held retrievals for chunks that wait."""


def task_us(index: int) -> int:
    """Return how long a task lasts: one of ten is long, and their places have no pattern."""
    return LONG_US if (index * 2_654_435_761 >> 7) % 10 == 0 else SHORT_US


def ideal_us(tasks: int, executors: int) -> int:
    """Return how long the tasks take if each starts, in their order, as soon as an executor is free."""
    free_us = [0] * executors
    for index in range(tasks):
        heapreplace(free_us, free_us[0] + task_us(index))
    return max(free_us)


class Held:
    """A retrieval that the master holds until `until_us`. `waits` is False once it was performed again."""

    def __init__(self, request: RetrieveTasks, until_us: int, heard: Heard) -> None:
        self.request, self.until_us, self.heard = request, until_us, heard
        self.waits = True


class LargeFleet(TimedWorld):
    """All workers have the same number of executors. As at the embedded master, a chunk wakes one held retrieval."""

    def __init__(self, world: World, workers: int, executors: int) -> None:
        super().__init__(world)
        self.tasks_run = 0
        self.busy = 0
        """How many executors run a task now."""
        self._held: deque[Held] = deque()
        self._sent = 0
        self._send = world.backend.queue.send
        world.backend.queue.send = self._count_sent  # type: ignore[method-assign]
        self.add_workers(*[executors] * workers)
        self._tick()

    def step(self) -> None:
        """Perform the next event, and then the held retrievals that it wakes."""
        super().step()
        while self._sent and self._held:
            held = self._held.popleft()
            if held.waits:
                self._sent -= 1
                held.waits = False
                self.hold(held.request, held.until_us, held.heard)
        self._sent = 0

    def start_task(self, task: Task) -> int:
        """See TimedWorld."""
        duration_us = task_us(task.index)
        self.tasks_run += 1
        self.busy += 1
        self.after(duration_us, self._end)
        return duration_us

    def _end(self) -> None:
        self.busy -= 1

    def _tick(self) -> None:
        self.world.timer.tick()
        self._sent += self.world.backend.queue.waiting()
        self.after(TICK_US, self._tick)

    def _count_sent(self, messages: Sequence[Sending]) -> list[bool]:
        self._sent += len(messages)
        return self._send(messages)

    def hold(self, request: RetrieveTasks, until_us: int, heard: Heard) -> None:
        """See TimedWorld."""
        reply = self.world.worker.retrieve_tasks(request)
        if reply.leases or reply.waiting or self.now_us >= until_us:
            holds = request.hold_s > 0
            answer = RetrieveTasksReply(leases=reply.leases, waiting=reply.waiting, holds=holds)
            self.reply(heard, answer)
            return
        held = Held(request, until_us, heard)
        if not request.peek:  # there is one package, so no peek hears of another one
            self._held.append(held)
        self.after(until_us - self.now_us, lambda: self._over(held))

    def _over(self, held: Held) -> None:
        if held.waits:
            held.waits = False
            self.hold(held.request, held.until_us, held.heard)


class Figures(NamedTuple):
    """What a run has reached.

    Attributes:
        busy: Which part of the executors was busy, on average, from 2 s after the start until all tasks were cut.
        efficiency: The ideal time of the whole package divided by the time that it took.
        tasks_run: How many tasks were started. If it is more than the tasks of the package, some were started twice.
        most_open: How many open ranges the package's head had at most.
        head_bytes: The size of the largest head.
    """

    busy: float
    efficiency: float
    tasks_run: int
    most_open: int
    head_bytes: int


def run(workers: int, executors: int, tasks: int, chunksize: int | None = None, most_s: int = 10**9) -> Figures:
    """Run one package to its end, but at most for `most_s` simulated seconds."""
    with TemporaryDirectory() as folder, master(Path(folder)) as world:
        fleet = LargeFleet(world, workers, executors)
        fleet.run_until(2 * TICK_US)  # all workers have reported and wait
        account = world.account("ann", 10**6 * HOUR_US)
        began_us = fleet.now_us
        package_id = world.start(account, tasks, chunksize=chunksize, python=PYTHON)
        most_open = head_bytes = 0
        busy: list[int] = []
        while not (head := world.head(package_id)).life.ended and fleet.now_us - began_us < most_s * TICK_US:
            most_open, head_bytes = max(most_open, len(head.tasks.open)), max(head_bytes, len(stored.encode(head)))
            if head.uncut and fleet.now_us - began_us >= 2 * TICK_US:
                busy.append(fleet.busy)
            fleet.run_until(fleet.now_us + TICK_US // 4)
        part = sum(busy) / (len(busy) * workers * executors)
        efficiency = ideal_us(tasks, workers * executors) / (fleet.now_us - began_us)
        return Figures(part, efficiency, fleet.tasks_run, most_open, head_bytes)


if __name__ == "__main__":
    sys.stdout.write(f"{run(*map(int, sys.argv[1:]))}\n")
