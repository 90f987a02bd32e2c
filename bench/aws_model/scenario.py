"""Runs packages on a simulated deployment. Its hosts exist from the start, or the master starts them."""

from collections.abc import Callable
from math import ceil, inf
from typing import Any, NamedTuple

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import AwaitTasks, Cursor, StartTasks
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.payloads import RangeData, TaskCode
from simulation.schedule import Schedule
from simulation.worker import PYTHON

from . import limits
from .fleet import Group
from .meter import Meter
from .services import Deployment
from .workers import Host, Tally

QUOTA_US = 10**17
S = 1_000_000


class Load(NamedTuple):
    """The packages of a run, and the hosts that run them.

    Attributes:
        name: The name of the run.
        executors: The executors of all hosts.
        on_host: The executors of one host.
        task_us: How long each task takes, in microseconds.
        packages: How many packages run at the same time.
        seconds: For how many seconds the tasks keep all executors busy, if there is no overhead.
        boots: Whether the hosts must be started; if not, they wait for work.
        goal: The share of the executors that must be busy (see `Figures.busy`); the run misses its goal below this
            share.
        per_s: How many tasks must end in a second, on average, in the middle of the run.
        all_work_s: How many seconds after the start of the packages the last host must have its first task.
    """

    name: str
    executors: int
    on_host: int
    task_us: int
    packages: int = 1
    seconds: int = 300
    boots: bool = False
    goal: float = 0.0
    per_s: float = 0.0
    all_work_s: float = inf

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return ceil(self.executors / self.on_host)

    @property
    def tasks(self) -> int:
        """How many tasks all packages have together."""
        return self.executors * self.seconds * S // self.task_us


class Figures(NamedTuple):
    """What a run has reached.

    Attributes:
        load: The load that ran.
        seconds: The time from the start of the packages until a client has read the last result.
        busy: The share of the executors that was busy, on average, in the middle of the run. The middle lasts from the
            first to the last second in which the number of busy executors was at least 90 % of its peak. The time
            before and after the middle is a part of `seconds`.
        per_s: How many tasks ended in a second, on average, in the middle of the run.
        first_s, last_s: When the first and the last host began their first task, in seconds after the start of the
            packages.
        peaks: The most that was used of each limit in a second, by the limit's name.
        waited_s: For how many seconds the reads and writes of packages waited, all together, because partitions
            throttled them.
        line: One tuple for each second: the second, the number of busy executors, and the number of tasks that have
            ended.
    """

    load: Load
    seconds: float
    busy: float
    per_s: float
    first_s: float
    last_s: float
    peaks: dict[str, float]
    waited_s: float
    line: list[tuple[int, int, int]]

    def missed(self) -> list[str]:
        """Return the goals that the run has missed, as texts."""
        load = self.load
        checks = (
            (self.busy >= load.goal, f"at least {load.goal:.0%} busy are wanted"),
            (self.per_s >= load.per_s, f"at least {load.per_s:,.0f} tasks a second are wanted"),
            (self.last_s <= load.all_work_s, f"all hosts must work within {load.all_work_s:g} s"),
        )
        return [f"{load.name}: {text}" for holds, text in checks if not holds]

    def binding(self) -> limits.Limit:
        """Return the limit of which the run has used the largest share."""
        return max(limits.LIMITS, key=lambda limit: self.peaks[limit.name] / limit.most)

    def as_object(self) -> dict[str, Any]:
        """Return the figures as a JSON object, without the line."""
        return {"load": self.load.name} | {
            name: value for name, value in self._asdict().items() if name not in {"load", "line"}
        }


class Run:
    """Runs one load."""

    def __init__(self, load: Load, progress: Callable[[int], object]) -> None:
        self._load = load
        self._progress = progress
        self._schedule = Schedule(0)
        self._tally = Tally()
        make = (lambda on: Group(on, load.hosts, load.on_host, self._boot)) if load.boots else None
        self._deployment = Deployment(self._schedule, make) if make else Deployment(self._schedule)
        self._ended = 0
        self._line: list[tuple[int, int, int]] = []

    def _boot(self, name: str) -> None:
        Host(self._deployment, self._tally, name, self._load.on_host, self._load.task_us)

    def to_the_end(self) -> Figures:
        """Run until each client has all results."""
        load, schedule = self._load, self._schedule
        if not load.boots:
            for number in range(load.hosts):
                schedule.after(number * 20 * S // load.hosts, lambda number=number: self._boot(f"{number:032x}"))  # type: ignore[misc]
            schedule.run_until(30 * S)
        began_us = schedule.now_us
        for number in range(load.packages):
            name = f"user {number}"
            account = AccountRecord(name, name, hash_token(name), "active", QUOTA_US, 0, 0, schedule.now())
            self._deployment.stores.accounts.create(account)
            schedule.spawn(lambda name=name: self._client(name))  # type: ignore[misc]
        while self._ended < load.packages:
            schedule.run_until(schedule.now_us + S)
            self._line.append(((schedule.now_us - began_us) // S, self._tally.busy, self._tally.tasks))
            self._progress(self._tally.tasks)
        return self._figures(began_us)

    def _client(self, name: str) -> None:
        tasks = self._load.tasks // self._load.packages
        deployment = self._deployment
        start = StartTasks(
            idempotency_key="key", n=tasks, code=TaskCode("0" * 64, b"code"), data=RangeData(0, 1), python=PYTHON
        )
        package = deployment.ask(name, routes.START_TASKS, start).package_id
        cursor = results = 0
        while True:
            try:
                request = AwaitTasks(packages=[Cursor(package_id=package, cursor=cursor)])
                reply = deployment.ask(name, routes.AWAIT_TASKS, request)
            except RequestError:
                self._schedule.sleep(S)
                continue
            (status,) = reply.packages
            cursor, results = status.cursor, results + len(status.results)
            if status.state != "running" and not status.more:
                assert (status.state, results) == ("completed", tasks)
                self._ended += 1
                return
            if not status.more:
                self._schedule.sleep(round(reply.retry_after_s * S))

    def _figures(self, began_us: int) -> Figures:
        load, tally, meter = self._load, self._tally, self._deployment.meter
        partitions = [*self._deployment.writes.values(), *self._deployment.reads.values()]
        most = max(busy for _, busy, _ in self._line)
        near = [number for number, (_, busy, _) in enumerate(self._line) if busy >= 0.9 * most]
        middle = self._line[near[0] : near[-1] + 1]
        (first_at, _, before), (last_at, _, after) = middle[0], middle[-1]
        return Figures(
            load=load,
            seconds=(self._schedule.now_us - began_us) / S,
            busy=sum(busy for _, busy, _ in middle) / len(middle) / load.executors,
            per_s=(after - before) / max(1, last_at - first_at),
            first_s=(tally.first_us - began_us) / S,
            last_s=(tally.last_us - began_us) / S,
            peaks=_peaks(meter, load),
            waited_s=sum(each.waited_us for each in partitions) / S,
            line=self._line,
        )


def _peaks(meter: Meter, load: Load) -> dict[str, float]:
    """Return the most of each limit that was used in a second; for a limit of one package, the most of any package."""
    peaks: dict[str, float] = {"instances": load.executors}
    for limit in limits.LIMITS[1:]:
        names = [name for name in meter.seconds if name == limit.name or name.startswith(f"{limit.name} ")]
        peaks[limit.name] = max((meter.peak(name) for name in names), default=0)
    peaks["functions"] = meter.most_functions
    return peaks
