"""What goes wrong in a run, and how often: drawn once from its seed."""

from random import Random

from msgspec import Struct


class Fate(Struct):
    """Probabilities of single calls and messages, until the run calms down.

    Attributes:
        lost: A request or an answer is.
        twice: A request arrives again later, at any master.
        dies: A master does, before or after a port's call.
        together: A caller dies with the master that he asks, as on one machine.
        refused: A port refuses, or takes effect and does not say so.
        stalls: A master stands still for seconds, in the middle of whatever it does.
        redelivered: The queue hands a message to somebody else as well.
        undeleted: The queue does not delete a message.
        unsent: The queue does not say that it has a message.
        mishap_us: A larger mishap about so often: vanished workers, partitions, clocks that jump; 0: never.
        skew_s: The masters' clocks differ by so much.
        until_us: Then all is well.
        quiet: Everybody is always answered: then the quota has its narrow bound.
    """

    lost: float = 0.0
    twice: float = 0.0
    dies: float = 0.0
    together: float = 0.0
    refused: float = 0.0
    stalls: float = 0.0
    redelivered: float = 0.0
    undeleted: float = 0.0
    unsent: float = 0.0
    mishap_us: int = 0
    skew_s: float = 0.0
    until_us: int = 0
    quiet: bool = False


def draw(random: Random) -> Fate:
    """Some runs meet a little of everything, others much of one thing."""

    def rate(*most: float) -> float:
        return random.choice([0.0, *most])

    quiet = random.random() < 0.2
    fate = Fate(
        lost=rate(0.02, 0.2),
        twice=rate(0.02, 0.2),
        dies=rate(0.005, 0.05),
        together=rate(0.5, 1.0),
        refused=rate(0.01, 0.1),
        stalls=rate(0.002, 0.02),
        redelivered=rate(0.02, 0.2),
        undeleted=rate(0.05, 0.3),
        unsent=rate(0.05, 0.3),
        mishap_us=random.choice([0, 1_000_000, 5_000_000]),
        skew_s=rate(0.5, 3.0),
        until_us=random.choice([5_000_000, 15_000_000, 30_000_000]),
    )
    if quiet:
        fate.lost = fate.dies = fate.refused = fate.stalls = 0.0
        fate.mishap_us = 0
    fate.quiet = quiet
    return fate
