"""Figures with their targets, and the readings that they are computed from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

REPEATS = 3

Unit = Literal["s", "ms", "MB", "%", ""]


@dataclass(frozen=True)
class Figure:
    """One promised figure.

    Attributes:
        name: The name that `--only` takes.
        what: A description for people.
        unit: The unit of the pool's value, of ProcessPoolExecutor's value and of the limit.
        limit: The target.
        at_least: Whether the limit is a lower bound. By default it is an upper bound.
    """

    name: str
    what: str
    unit: Unit
    limit: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        """Return whether a value meets the target."""
        return value >= self.limit if self.at_least else value <= self.limit


class Reading(NamedTuple):
    """One reading of a figure: the pool's value, and ProcessPoolExecutor's value, measured right before or after it.

    `peer` is None if there is nothing to measure with ProcessPoolExecutor.
    """

    figure: str
    ours: float
    peer: float | None = None


@dataclass(frozen=True)
class Part:
    """Figures that one call of `run` measures. The call yields each reading as soon as it is made."""

    figures: tuple[Figure, ...]
    run: Callable[[], Iterator[Reading]]


class Found(NamedTuple):
    """The medians of a figure's readings."""

    figure: Figure
    ours: float
    peer: float | None

    @property
    def ok(self) -> bool:
        """Whether the pool's median meets the target."""
        return self.figure.holds(self.ours)


def measure(part: Part) -> list[Found]:
    """Run a part and compute the medians of its readings."""
    readings = list(part.run())
    found = []
    for figure in part.figures:
        of_figure = [reading for reading in readings if reading.figure == figure.name]
        peers = [reading.peer for reading in of_figure if reading.peer is not None]
        found.append(Found(figure, median(reading.ours for reading in of_figure), median(peers) if peers else None))
    return found
