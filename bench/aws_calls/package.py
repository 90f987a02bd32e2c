"""Runs one package from its start until its tombstone is deleted, and counts what that costs."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from cloudpar_master.adapters.aws.backend import POLICY
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Acknowledge, AwaitTasks, Cursor, Hello, HelloReply, StartTasks
from cloudpar_protocol.payloads import RangeData, TaskCode
from cloudpar_protocol.seals import Seals, package_id
from simulation.worker import PYTHON
from support.timeline import Timeline

from .counts import Counts
from .master import USER, Master, on_aws
from .workers import ROUND_TRIP_US, Agent

EXECUTORS = 4
IDLE_US = 20_000_000
"""Before the package starts, the agents start one after the other over this time, in microseconds."""

TICK_US = 60_000_000


class Load(Struct, frozen=True):
    """The shape of a package whose cost is counted, and the number of agents that run it."""

    tasks: int
    task_us: int
    agents: int = 25


class Counted(NamedTuple):
    """The counts, and the simulated seconds from the package's start to its last result."""

    counts: Counts
    seconds: float


def count_package(load: Load, progress: Callable[[int], None] = lambda _done: None) -> Counted:
    """Start a package, run it on idle agents, read and acknowledge the results, and wait until its tombstone is gone.

    Between its requests for results, the client waits as long as the master tells it to. For a package of one task, it
    sends its first request when the task should be done, so that one request is enough.
    """
    clock, counts = Timeline(), Counts()
    with on_aws(clock, counts, load.agents) as master:
        return Counted(counts, _run(clock, master, load, progress))


def _run(clock: Timeline, master: Master, load: Load, progress: Callable[[int], None]) -> float:
    for number in range(load.agents):
        start = partial(Agent, clock, master, f"{number:032x}", EXECUTORS, load.task_us)
        clock.after(number * IDLE_US // load.agents, start)
    watch_minutes(clock, master)
    advance(clock, IDLE_US)
    who = greet(master)
    began_us = clock.now_us
    package = start_package(master, who, load.tasks)
    if load.tasks == 1:
        advance(clock, clock.now_us + load.task_us + 10 * ROUND_TRIP_US + IDLE_US // load.agents)
    _await(clock, master, package, load.tasks, progress)
    ended_us = clock.now_us
    with master.counts.during("acknowledge"):
        master.call(USER, routes.ACKNOWLEDGE, Acknowledge(package_ids=[package]))
    clock.now_us += round((POLICY.tombstone_s + 61) * 1e6)
    with master.counts.during("forget"):
        master.tick()
    return (ended_us - began_us) / 1e6


def greet(master: Master) -> HelloReply:
    """Send the request that each pool sends once, when it opens."""
    with master.counts.during("set up"):
        return master.call(USER, routes.HELLO, Hello())


def start_package(master: Master, who: HelloReply, tasks: int) -> str:
    """Start a sealed package with small code and numbers as data."""
    assert who.seal_key is not None
    assert who.account_id is not None
    code, data = TaskCode("0" * 64, b"code"), RangeData(0, 1)
    seals = Seals(who.seal_key, package_id(who.account_id, "package", sealed=True))
    start = StartTasks(
        idempotency_key="package",
        n=tasks,
        code=code,
        data=data,
        python=PYTHON,
        seal=seals.code(code, data, call="value", codec="pickle", python=PYTHON, tasks=tasks),
    )
    with master.counts.during("start"):
        return master.call(USER, routes.START_TASKS, start).package_id


def _await(clock: Timeline, master: Master, package: str, tasks: int, progress: Callable[[int], None]) -> None:
    cursor, results = 0, 0
    while True:
        with master.counts.during("await"):
            request = AwaitTasks(packages=[Cursor(package_id=package, cursor=cursor)])
            reply = master.call(USER, routes.AWAIT_TASKS, request)
        (status,) = reply.packages
        cursor, results = status.cursor, results + len(status.results)
        progress(results)
        if status.state != "running" and not status.more:
            assert (status.state, results) == ("completed", tasks)
            return
        advance(clock, clock.now_us + ROUND_TRIP_US + round(reply.retry_after_s * 1e6))


def advance(clock: Timeline, until_us: int) -> None:
    """Run all events up to an instant of simulated time."""
    arrived: list[bool] = []
    clock.after(until_us - clock.now_us, lambda: arrived.append(True))
    while not arrived:
        clock.step()


def watch_minutes(clock: Timeline, master: Master) -> None:
    """Run the timer once a minute from now on."""

    def tick() -> None:
        with master.counts.during("timer") as made:
            packages = master.tick()
        if packages:
            master.counts.move(made, "timer", "folds by the timer")
        clock.after(TICK_US, tick)

    clock.after(TICK_US, tick)
