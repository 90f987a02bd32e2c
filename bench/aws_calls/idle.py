"""Idle agents: how often they send requests, and how soon one of them leases a chunk of a new package."""

from typing import Any, NamedTuple

from support.timeline import Timeline

from .counts import Counts
from .master import Master, on_aws
from .package import advance, greet, start_package, watch_minutes
from .workers import Agent

AGENTS, EXECUTORS, TASK_US = 100, 4, 1_000
CALM_US = 120_000_000
LOOKED_AT_US = 60_000_000
START_S, REQUESTS_PER_S = 3.0, 10.0


class Idle(NamedTuple):
    """Requests of all idle agents, per second, and the simulated time from a package's start to its first lease."""

    requests_per_s: float
    start_s: float

    @property
    def missed(self) -> list[str]:
        texts = []
        if self.requests_per_s >= REQUESTS_PER_S:
            texts.append(
                f"{AGENTS} idle agents: {self.requests_per_s:.1f} requests/s, under {REQUESTS_PER_S} are wanted"
            )
        if self.start_s > START_S:
            texts.append(f"{AGENTS} idle agents: a package starts after {self.start_s:.1f} s, {START_S} s are wanted")
        return texts

    def as_object(self) -> dict[str, Any]:
        return {"agents": AGENTS, **self._asdict(), "missed": self.missed}


def count_idle(calm_us: int = CALM_US) -> Idle:
    """Count the requests of idle agents, and then measure how soon a new package gets its first lease.

    All agents start at once, as after an update of all instances. Their requests spread over time by themselves.

    Args:
        calm_us: How long the agents run before their requests are counted, in simulated microseconds.
    """
    clock, counts = Timeline(), Counts()
    with on_aws(clock, counts, AGENTS) as master:
        return _run(clock, master, calm_us)


def _run(clock: Timeline, master: Master, calm_us: int) -> Idle:
    counts = master.counts
    for number in range(AGENTS):
        Agent(clock, master, f"{number:032x}", EXECUTORS, TASK_US)
    watch_minutes(clock, master)
    advance(clock, calm_us)
    before = counts.of["idle polls", "API Gateway"]
    advance(clock, calm_us + LOOKED_AT_US)
    requests = counts.of["idle polls", "API Gateway"] - before
    who = greet(master)
    began_us = clock.now_us
    start_package(master, who, tasks=100)
    while not counts.of["retrieve", "API Gateway"]:
        clock.step()
    return Idle(requests * 1e6 / LOOKED_AT_US, (clock.now_us - began_us) / 1e6)
