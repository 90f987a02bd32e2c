"""What goes wrong in a run, and with which probability: drawn once from its seed."""

from random import Random

from msgspec import Struct


class Fate(Struct):
    """Probabilities of faults of single calls and messages, until the faults end.

    Attributes:
        lost: A request or an answer is lost.
        twice: A request arrives again later, at any master.
        dies: A master dies, before or after a port call.
        together: The caller of a master that dies also dies, as on one machine.
        refused: A port refuses a call, or carries it out without an answer.
        stalls: A master stops for some seconds between two port calls.
        redelivered: The queue also delivers a message to another worker.
        undeleted: The queue does not delete a message.
        unsent: The queue answers that it did not take a message, although it did.
        mishap_us: The mean time between larger mishaps: vanished workers, partitions, clocks that jump; 0: none.
        skew_s: The largest difference of a master's clock.
        until_us: When all faults end.
        quiet: Every request is answered, so that the bound of the quota is narrow.
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
    """Draw the faults of a run: some runs have a little of everything, others much of one thing."""

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
