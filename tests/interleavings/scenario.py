from typing import Final, NamedTuple

from cloudpar_master.core.policy import Policy

from .clients import TICK
from .desk import Actor, Deed

AGE_S: Final = 400.0
"""Packages that no client acknowledges expire, and tombstones go, after this time. It is longer than the 5 minutes for
which a queue drops repeated messages: a new package with an old key has chunks with old names."""

POLICY: Final = Policy(
    first_window=2,
    lease_s=2.0,
    retention_s=AGE_S,
    tombstone_s=AGE_S,
    slice_us=10_000,
    grace_s=2.0,
    kept_bytes=0,
    saves_first_sent=True,
)
"""Each actor is a process of its own, as on AWS. Without `kept_bytes`, each package goes through all steps of a
deletion."""

PLENTY_US: Final = 10**9


class Scenario(NamedTuple):
    """What actors do at the same time.

    Attributes:
        actors: Who takes part.
        before: The names of actors that do their next deed before the exploration starts, in this order.
        deviations: How many switches and crashes a schedule of the full form has at most.
        quota_us: The quota of each account.
        short: The quota does not cover all tasks.
        turn_s: When all actors are done, a timer and a worker come each time after this many seconds.
    """

    name: str
    actors: tuple[Actor, ...]
    before: tuple[str, ...] = ()
    deviations: int = 2
    policy: Policy = POLICY
    quota_us: int = PLENTY_US
    short: bool = False
    turn_s: float = 1.0


def client(name: str, *deeds: Deed, account: str = "a1", key: str = "k") -> Actor:
    """Make an actor with a package."""
    return Actor(name, deeds, account, key)


def worker(name: str, *deeds: Deed) -> Actor:
    """Make a worker, which repeats each request until it is answered."""
    return Actor(name, deeds)


def timer(name: str, ticks: int = 1, schema: int = 1) -> Actor:
    """Make a timer."""
    return Actor(name, (TICK,) * ticks, schema=schema)
