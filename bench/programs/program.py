"""What a program is, and what its runs showed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from .engines import Engine

CLOUDPAR: Final = "cloudpar"
JOBLIB: Final = "joblib"
DASK: Final = "dask"
ALL: Final = (CLOUDPAR, JOBLIB, DASK)


@dataclass(frozen=True)
class Program:
    """One program.

    Attributes:
        name: As `--only` takes it.
        what: One line for the table.
        run: The program. Returns what it computed, which must be equal on every engine.
        engines: The engines whose API can express it.
        workers: Processes that each engine starts.
        prepare: Runs once, before any engine, and is not timed: it writes the files that the program reads.
    """

    name: str
    what: str
    run: Callable[[Engine], object]
    engines: tuple[str, ...] = ALL
    workers: int = 2
    prepare: Callable[[], None] | None = None


@dataclass
class Outcome:
    """The times of one program, in seconds by engine, one reading a round; or why it has none."""

    program: Program
    times: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def median_s(self, engine: str) -> float | None:
        """The median reading of an engine."""
        readings = self.times.get(engine)
        return median(readings) if readings else None

    def ratio(self, peer: str) -> float | None:
        """The pool's time over the peer's: the median of the ratios of each round, since the machine's speed drifts."""
        ours, theirs = self.times.get(CLOUDPAR), self.times.get(peer)
        if not ours or not theirs:
            return None
        return median(our / their for our, their in zip(ours, theirs, strict=True))
