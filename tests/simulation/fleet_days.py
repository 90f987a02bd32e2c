"""One simulated day of a fleet on AWS, in steps of STEP_S seconds, from one seed.

The real AutoScalingFleet decides. Around it, everything goes wrong at times: calls of AWS fail, the timer comes late,
hosts boot slowly or never work, AWS has no capacity, and takes spot instances away with the tasks on them.

The day checks after each step that the fleet is neither stuck nor too large, and that idle hosts end.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from random import Random
from typing import Any

from botocore.exceptions import ClientError

from cloudpar_master.adapters.aws.fleet import AutoScalingFleet
from cloudpar_master.core.fleet_size import HostShape, Work

STEP_S = 10
TIMER_S = 60
LOST_AFTER_S = 60
"""How long the tasks of a host that AWS took away wait for their leases to end."""
CHUNK_S = 10.0
BOOT_S = 120
FIRST_WINDOW = 32
NEVER_WORKED_S = 600
LATEST_TIMER_S = 240
LONGEST_TASK_S = 1_000
STAYS_S = BOOT_S + LONGEST_TASK_S + NEVER_WORKED_S + 1_200
"""How long a fleet may be as large as it had to be: until its last task and its last idle host have ended."""
AGAIN_S = 30
"""How long a host waits before it repeats a call by which it wanted to end."""


@dataclass
class Package:
    """A map of `tasks` tasks that take `task_s` each."""

    tasks: int
    task_s: float
    uncut: int = 0
    done: int = 0
    held: int = 0

    def __post_init__(self) -> None:
        self.uncut = self.tasks

    @property
    def left(self) -> int:
        return self.tasks - self.done

    @property
    def chunk(self) -> int:
        """How many tasks the next chunk has."""
        wished = round(CHUNK_S / self.task_s) if self.done else min(16, self.tasks // (16 * FIRST_WINDOW))
        return max(1, min(wished, self.uncut))

    @property
    def chunks(self) -> int:
        return self.held + (min(FIRST_WINDOW, ceil(self.uncut / self.chunk)) if self.uncut else 0)

    @property
    def work(self) -> Work:
        """What the master knows: the duration of tasks once one has ended."""
        return Work(self.left, self.left * self.task_s * 1e6 if self.done else None, self.chunks)

    @property
    def needs(self) -> float:
        """How many executors it needs. While its durations are unknown, that is one for two chunks."""
        return min(self.left, self.left * self.task_s / BOOT_S if self.done else self.chunks / 2)


@dataclass
class Host:
    """An instance: it boots until `works_at`, unless it never works."""

    started_at: int
    works_at: float
    runs: list[tuple[Package, int, float]] = field(default_factory=list)
    idle_since: float = 0.0
    asks_again_at: float = 0.0


class FleetDay:
    """A day. `run` raises AssertionError if something went wrong."""

    def __init__(self, seed: int, *, idle_s: int = 300) -> None:
        self.random = Random(seed)
        self.now_s, self.idle_s = 0, idle_s
        self.shape = HostShape(self.random.choice([2, 4, 8]), 2)
        self.most = self.random.choice([1, 4, 20])
        self.desired = 0
        self.hosts: list[Host] = []
        self.packages: list[Package] = []
        self.lost: deque[tuple[int, Package, int]] = deque()
        self.needed: deque[tuple[int, int]] = deque()
        self.ended_idle = self.calls = self.failed = self.taken = self.raises = 0
        self.failing = self.random.choice([0.0, 0.05, 0.2])
        self.full_until = 0
        self.stuck_s = 0
        world: Any = self
        self.processes = [AutoScalingFleet(lambda: world, "g", world, world, self.shape) for _ in range(3)]
        self.arrivals = sorted(
            (self.random.randrange(0, 3_600, STEP_S), self._package()) for _ in range(self.random.randint(1, 6))
        )

    def _package(self) -> Any:
        task_s = min(10 ** self.random.uniform(-2, 3), LONGEST_TASK_S)
        tasks = max(1, min(round(10 ** self.random.uniform(0, 5)), round(30_000 / task_s)))
        return tasks, task_s

    # What AutoScalingFleet calls: a clock, the turn, and the client.

    def now(self) -> float:
        return float(self.now_s)

    def take(self) -> bool:
        self._call()
        return True

    def release(self) -> None:
        """Nothing else runs at the same time."""

    def describe_auto_scaling_groups(self, **_: object) -> dict[str, Any]:
        self._call()
        return {"AutoScalingGroups": [{"DesiredCapacity": self.desired, "MaxSize": self.most, "Instances": []}]}

    def set_desired_capacity(self, **request: Any) -> None:
        self._call()
        wanted = request["DesiredCapacity"]
        assert self.desired < wanted <= self.most, "the fleet was made smaller, not larger, or too large"
        assert wanted <= ceil(1.1 * self.need()), f"{wanted} hosts for a need of {self.need()}"
        self.desired, self.raises = wanted, self.raises + 1

    def _call(self) -> None:
        self.calls += 1
        if self.random.random() < self.failing:
            self.failed += 1
            raise ClientError({"Error": {"Code": "Throttling"}}, "call")

    def need(self) -> int:
        """How many hosts are needed, by what the packages really have left: two minutes of work for each executor."""
        left = [package for package in self.packages if package.left]
        executors = sum(package.needs for package in left)
        return min(max(ceil(executors / self.shape.executors), bool(left)), self.most)

    # The day.

    def run(self) -> "FleetDay":
        timer_at = self.random.randrange(TIMER_S)
        while self.arrivals or self.hosts or any(package.left for package in self.packages) or self.desired:
            self.now_s += STEP_S
            assert self.now_s < 200_000, f"after two days {self.packages} {self.hosts} are left"
            self._arrive()
            if self.now_s >= timer_at:
                self._decide(self.processes[0], [package.work for package in self.packages])
                timer_at = self.now_s + self.random.choice([TIMER_S] * 8 + [90, LATEST_TIMER_S])
            self._take_away()
            self._launch()
            for host in list(self.hosts):
                self._step(host)
            self._check()
        return self

    def _arrive(self) -> None:
        while self.arrivals and self.arrivals[0][0] <= self.now_s:
            package = Package(*self.arrivals.pop(0)[1])
            self.packages.append(package)
            self._decide(self.random.choice(self.processes[1:]), [package.work])
        while self.lost and self.lost[0][0] <= self.now_s:
            _, package, tasks = self.lost.popleft()
            package.uncut += tasks

    def _decide(self, process: AutoScalingFleet, works: Sequence[Work]) -> None:
        failed = self.failed
        process.grow(works)
        if self.failed == failed:
            need = self.need() if process is self.processes[0] else 1
            assert self.desired >= need, f"{self.desired} hosts are wanted, and {need} are needed"

    def _take_away(self) -> None:
        """AWS takes a spot instance away, and the group starts another one in its place."""
        if self.hosts and self.random.random() < 0.001:
            host = self.random.choice(self.hosts)
            self.taken += 1
            for package, tasks, _ in host.runs:
                package.held -= 1
                self.lost.append((self.now_s + LOST_AFTER_S, package, tasks))
            self.hosts.remove(host)

    def _launch(self) -> None:
        assert len(self.hosts) <= self.desired, "AWS would end a host of its own choice"
        if self.random.random() < 0.0005:
            self.full_until = self.now_s + self.random.randint(60, 1_800)
        while len(self.hosts) < self.desired and self.now_s >= self.full_until:
            boot_s = self.random.choice([60, 90, 120, 120, 300, float("inf") if self.random.random() < 0.2 else 150])
            self.hosts.append(Host(self.now_s, self.now_s + boot_s, idle_since=self.now_s + boot_s))

    def _step(self, host: Host) -> None:
        if self.now_s < host.works_at:
            self._end(host, host.started_at + NEVER_WORKED_S)
            return
        for number, (package, tasks, left_s) in enumerate(host.runs[: self.shape.executors]):
            host.runs[number] = (package, tasks, left_s - STEP_S)
            if left_s <= STEP_S:
                package.done += tasks
                package.held -= 1
        host.runs = [run for run in host.runs if run[2] > 0]
        # Half of the chunks run, and the host holds the others ahead, so that the queue looks empty.
        while len(host.runs) < 2 * self.shape.executors and (next_one := self._next()) is not None:
            tasks = next_one.chunk
            next_one.uncut -= tasks
            next_one.held += 1
            host.runs.append((next_one, tasks, tasks * next_one.task_s))
        if host.runs:
            host.idle_since = self.now_s
        self._end(host, host.idle_since + self.idle_s)

    def _next(self) -> Package | None:
        waiting = [package for package in self.packages if package.uncut]
        return self.random.choice(waiting) if waiting else None

    def _end(self, host: Host, due_at: float) -> None:
        """The host asks the group to end it, and to want one host less."""
        if self.now_s < max(due_at, host.asks_again_at):
            return
        try:
            self._call()
        except ClientError:
            host.asks_again_at = self.now_s + AGAIN_S
            return
        self.hosts.remove(host)
        self.desired -= 1
        self.ended_idle += 1

    def _check(self) -> None:
        need = self.need()
        while self.needed and (self.needed[-1][1] <= need or self.needed[0][0] < self.now_s - STAYS_S):
            self.needed.pop() if self.needed[-1][1] <= need else self.needed.popleft()
        self.needed.append((self.now_s, need))
        assert self.desired <= ceil(1.1 * self.needed[0][1]), f"{self.desired} hosts for a need of {self.needed}"
        self.stuck_s = self.stuck_s + STEP_S if need and not self.desired else 0
        assert self.stuck_s <= (300 if not self.failing else 40 * LATEST_TIMER_S), "work waits, and no host is wanted"
        late_s = 0 if not self.failing else 20 * AGAIN_S
        for host in self.hosts:
            if host.works_at <= self.now_s:
                assert self.now_s - host.idle_since <= self.idle_s + late_s, "a host is idle for too long"
