"""How much a guarantee's test does: little in `make test`, the promised figure in `make guarantees`."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

FULL: Final = "CLOUDPAR_GUARANTEES"
"""Set by `make guarantees`, so that tests use their full figures."""
FIGURES: Final = "CLOUDPAR_FIGURES"
"""Names the file for the reached figures."""

T = TypeVar("T")


class Scale:
    """Chooses between a quick and a full figure.

    >>> Scale(full=False)(20, 1_000)
    20
    """

    def __init__(self, *, full: bool) -> None:
        self.full = full

    def __call__(self, quick: T, full: T) -> T:
        """Return the quick or the full figure."""
        return full if self.full else quick


SCALE: Final = Scale(full=os.environ.get(FULL) == "full")
"""The scale for what is decided before a test runs: its parameters."""


def some(points: Sequence[T], step: int, first: int = 0) -> Sequence[T]:
    """Return every `step`-th point, or all in the full form. `first` differs between tests with similar points."""
    return points if SCALE.full else points[first % max(1, min(step, len(points))) :: step]


class Reached(msgspec.Struct):
    """What a test reached, in the words of the promised figure.

    Attributes:
        counts: The numbers for the figure's braces.
        least: What the sums of these counts over all tests must reach in `make guarantees`.
    """

    test: str
    figure: str
    counts: dict[str, int] = {}
    least: dict[str, int] = {}


def in_words(reached: Iterable[Reached]) -> list[str]:
    """Return each figure once; counts of several tests in the same words are added up.

    >>> in_words([Reached("test[0]", "{runs} runs", {"runs": 2}), Reached("test[1]", "{runs} runs", {"runs": 3})])
    ['5 runs']
    """
    return [figure.format(**counts) if counts else figure for figure, counts in _sums(reached).items()]


def missed(reached: Sequence[Reached]) -> list[str]:
    """Return the counts whose sums over all tests are too small.

    >>> missed([Reached("test[0]", "{runs} runs", {"runs": 2}, {"runs": 6}), Reached("test[1]", "{runs} runs")])
    ['2 runs are less than 6']
    """
    sums = _sums(reached)
    least = {(each.figure, name): number for each in reached for name, number in each.least.items()}
    return [
        f"{sums[figure][name]:,} {name} are less than {number:,}"
        for (figure, name), number in least.items()
        if sums[figure][name] < number
    ]


def _sums(reached: Iterable[Reached]) -> dict[str, Counter[str]]:
    sums: dict[str, Counter[str]] = {}
    for each in reached:
        sums.setdefault(each.figure, Counter()).update(each.counts)
    return sums


def record(test: str, figure: str, *, least: dict[str, int] | None = None, **counts: int) -> None:
    """Record a figure for `make guarantees`; other runs discard it."""
    reached = Reached(test, figure, counts, least or {})
    assert in_words([reached])  # words that lack a count fail in the quick form, too
    assert reached.least.keys() <= counts.keys()
    path = os.environ.get(FIGURES)
    if path:
        with Path(path).open("ab") as file:
            file.write(msgspec.json.encode(reached) + b"\n")
