"""A program, and the outcome of its runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from .engines import CLOUDPAR, ENGINES, Engine


@dataclass(frozen=True)
class Program:
    """One program.

    Attributes:
        name: The name that `--only` takes.
        what: One line for the table.
        run: Runs the program, and returns what it computed. This must be equal on every engine.
        engines: The engines whose API can express it.
        workers: How many processes each engine starts for tasks.
        prepare: Writes the files that the program reads. It is called once, before the first engine starts, and is not
            timed.
    """

    name: str
    what: str
    run: Callable[[Engine], object]
    engines: tuple[str, ...] = tuple(ENGINES)
    workers: int = 2
    prepare: Callable[[], None] | None = None


@dataclass
class Outcome:
    """The outcome of the runs of one program.

    Attributes:
        pairs: For each of the other engines, one pair of seconds (the pool's, that engine's) for each round.
        failures: For each engine whose result differs from the pool's, a text with both results.
    """

    program: Program
    pairs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def median_s(self, engine: str) -> float | None:
        """Return an engine's median time, or None if it has not run.

        The pool runs in turn with each other engine. The pool's median is that of its runs beside the first other
        engine.
        """
        if engine == CLOUDPAR:
            return median(ours for ours, _ in next(iter(self.pairs.values()))) if self.pairs else None
        return median(theirs for _, theirs in self.pairs[engine]) if engine in self.pairs else None

    def ratio(self, peer: str) -> float | None:
        """Return the pool's time divided by the peer's, or None if the peer has not run.

        It is the median of the ratios of all rounds, so that drifts of the machine's speed hardly change it.
        """
        return median(ours / theirs for ours, theirs in self.pairs[peer]) if peer in self.pairs else None
