"""What is measured against what: a figure, its target, and the readings it is made of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

REPEATS = 3

Unit = Literal["s", "ms", "MB", "%", ""]


@dataclass(frozen=True)
class Figure:
    """One promise.

    Attributes:
        name: How it is asked for.
        what: What is measured, for people.
        unit: Of both columns and the limit.
        limit: The target.
        at_least: Whether the limit is a lower bound; usually it is an upper one.
    """

    name: str
    what: str
    unit: Unit
    limit: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value meets the target."""
        return value >= self.limit if self.at_least else value <= self.limit


class Reading(NamedTuple):
    """One repeat: ours, and what ProcessPoolExecutor took for the same right before or after."""

    figure: str
    ours: float
    peer: float | None = None


@dataclass(frozen=True)
class Part:
    """Figures that come from one run. `run` yields readings as they are made."""

    figures: tuple[Figure, ...]
    run: Callable[[], Iterator[Reading]]


class Found(NamedTuple):
    """A figure's medians."""

    figure: Figure
    ours: float
    peer: float | None

    @property
    def ok(self) -> bool:
        """Whether the target is met."""
        return self.figure.holds(self.ours)


def measure(part: Part) -> list[Found]:
    """Run a part, and reduce its readings."""
    readings = list(part.run())
    found = []
    for figure in part.figures:
        of_figure = [reading for reading in readings if reading.figure == figure.name]
        peers = [reading.peer for reading in of_figure if reading.peer is not None]
        found.append(Found(figure, median(reading.ours for reading in of_figure), median(peers) if peers else None))
    return found
