"""A seeded plan of faults, and how each strikes the processes of a run."""

from contextlib import AbstractContextManager, nullcontext
from random import Random
from threading import Event
from typing import Final, NamedTuple

from histories.history import Recorder
from histories.site import Site, paused

KINDS: Final = {
    "kill the master": 3, "kill a worker": 3, "kill a client": 3, "pause the master": 2, "pause a worker": 2,
    "pause a client": 2, "slow the disk": 2, "set the clock": 2,
}  # fmt: skip
"""The faults, and how frequent they are."""
HOUR_S: Final = 3600.0
"""All jumps of a run together stay far below a day, after which a master forgets deleted packages."""


class Fault(NamedTuple):
    """A fault that strikes some seconds after the start of the run.

    Attributes:
        lasts_s: How long a pause or a slow disk lasts.
        ahead_s: How far a clock is set ahead of the real one.
    """

    at_s: float
    kind: str
    victim: int
    lasts_s: float
    ahead_s: float


def plan(seed: str, seconds: float, every_s: float) -> list[Fault]:
    """Return the faults of a run. The first one kills the master."""
    random, faults, at_s = Random(seed), list[Fault](), every_s
    while at_s < seconds:
        kind = random.choices(list(KINDS), list(KINDS.values()))[0] if faults else "kill the master"
        faults.append(
            Fault(at_s, kind, random.randrange(12), random.uniform(0.1, 3.0), random.uniform(-HOUR_S, HOUR_S))
        )
        at_s += random.uniform(0.5, 1.5) * every_s
    return faults


def strike(site: Site, fault: Fault, record: Recorder) -> None:
    """Let a fault happen, and wait until it is over."""
    record.fault(f"{fault.kind} {fault.victim}, {fault.lasts_s:.1f} s")
    client, agent = fault.victim % len(site.clients), fault.victim % len(site.agents)
    if fault.kind == "kill the master":
        site.kill_master()
    elif fault.kind == "kill a worker":
        site.kill_agent(agent)
    elif fault.kind == "kill a client":
        site.kill_client(client)
    elif fault.kind == "set the clock":
        site.set_clock(fault.ahead_s)
    else:
        with _lasting(site, fault.kind, client, agent):
            Event().wait(fault.lasts_s)
    record.fault("over")


def _lasting(site: Site, kind: str, client: int, agent: int) -> AbstractContextManager[None]:
    if kind == "pause the master":
        return paused(site.master.process)
    if kind == "pause a worker":
        return paused(site.agents[agent].process)
    if kind == "pause a client" and site.clients[client].poll() is None:
        return paused(site.clients[client])
    return site.slow() if kind == "slow the disk" else nullcontext()
