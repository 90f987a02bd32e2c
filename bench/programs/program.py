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
    """What the runs of one program showed.

    Attributes:
        pairs: For each of the other engines the pool's seconds and that engine's, one pair a round.
        failures: Why an engine has no times, or that its result is another one.
    """

    program: Program
    pairs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def median_s(self, engine: str) -> float | None:
        """The median reading of an engine; of the pool, beside the first of the others."""
        if engine == CLOUDPAR:
            return median(ours for ours, _ in next(iter(self.pairs.values()))) if self.pairs else None
        return median(theirs for _, theirs in self.pairs[engine]) if engine in self.pairs else None

    def ratio(self, peer: str) -> float | None:
        """The pool's time over the peer's: the median of the ratios of each round, since the machine's speed drifts."""
        return median(ours / theirs for ours, theirs in self.pairs[peer]) if peer in self.pairs else None
