"""Every two of the things that can happen to a running package, while a worker runs it and its client reads."""

from itertools import combinations
from typing import Final

from .clients import ACKNOWLEDGE, LIST, READ, REVOKE, TICK, cancel, grant, start, wait
from .desk import Actor
from .scenario import Scenario
from .workers import BEAT, How, give_back, publish, retrieve

CLIENT: Final = Actor("client", (start(4, chunksize=2), READ))
WORKER: Final = Actor("worker", (retrieve(), publish(How(1)), publish()))
"""It publishes the results of its lease one by one, and the last publication closes the lease."""

PROGRAMS: Final = {
    "another worker publishes": Actor("second", (retrieve(), publish())),
    "a worker takes all and dies with its master": Actor("mortal", (retrieve(2), publish()), mortal=True),
    "a worker gives back": Actor("returner", (retrieve(), give_back())),
    "a worker gives a part back": Actor("divider", (retrieve(), publish(How(1, closes=False)), give_back())),
    "a worker loses a result": Actor("loser", (retrieve(), publish(How(skips=1)))),
    "tasks fail": Actor("failing", (retrieve(), publish(How(outcome="error")))),
    "results are in blobs": Actor("uploader", (retrieve(), publish(How(blobs=True)))),
    "a worker beats": Actor("beating", (retrieve(), BEAT, publish())),
    "a client cancels all": Actor("canceller", (cancel(),)),
    "a client cancels some": Actor("partial", (cancel([(1, 3)]),)),
    "a client cancels what is queued": Actor("draining", (cancel(only_queued=True),)),
    "another client reads": Actor("reader", (READ, READ)),
    "a client acknowledges": Actor("acknowledger", (ACKNOWLEDGE,)),
    "a client starts again": Actor("starter", (start(4, chunksize=2), READ)),
    "the timer ticks": Actor("timer", (TICK,)),
    "a lease ends": Actor("clock", (wait(2.5),)),
    "an operator revokes": Actor("operator", (REVOKE,)),
    "an operator takes the quota": Actor("taker", (grant(-(10**12)), LIST)),
}  # fmt: skip
"""Another actor for each thing that can happen."""


def pairs() -> list[Scenario]:
    """Make a scenario of each two things."""
    return [
        Scenario(
            f"{one}, {other}", (CLIENT, WORKER, PROGRAMS[one], PROGRAMS[other]), ("client", "worker"),
            short="an operator takes the quota" in {one, other},
        )
        for one, other in combinations(PROGRAMS, 2)
    ]  # fmt: skip
