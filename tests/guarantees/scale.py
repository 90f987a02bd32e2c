"""How much a guarantee's test does: the quick form in `make test`, the figure that is asked under `make guarantees`."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

FULL: Final = "CLOUDPAR_GUARANTEES"
"""Set by `make guarantees`: tests take their full figures."""
FIGURES: Final = "CLOUDPAR_FIGURES"
"""The file that takes what was reached."""

T = TypeVar("T")


class Scale:
    """Chooses between the quick and the full form.

    >>> Scale(full=False)(20, 1_000)
    20
    """

    def __init__(self, *, full: bool) -> None:
        self.full = full

    def __call__(self, quick: T, full: T) -> T:
        """The one or the other."""
        return full if self.full else quick


SCALE: Final = Scale(full=os.environ.get(FULL) == "full")
"""For what is decided before a test runs: its parameters."""


def some(points: Sequence[T], step: int, first: int = 0) -> Sequence[T]:
    """Every so-manyth of them; all in the full form. What begins alike has another first one each."""
    return points if SCALE.full else points[first % step :: step]


class Reached(msgspec.Struct):
    """What a test saw, in the words of the figure that is asked.

    Attributes:
        counts: What the figure has in braces.
    """

    test: str
    figure: str
    counts: dict[str, int] = {}


def in_words(reached: Iterable[Reached]) -> list[str]:
    """Each figure once; what several tests counted in the same words is added up.

    >>> in_words([Reached("test[0]", "{runs} runs", {"runs": 2}), Reached("test[1]", "{runs} runs", {"runs": 3})])
    ['5 runs']
    """
    sums: dict[str, Counter[str]] = {}
    for each in reached:
        sums.setdefault(each.figure, Counter()).update(each.counts)
    return [figure.format(**counts) if counts else figure for figure, counts in sums.items()]


def record(test: str, figure: str, **counts: int) -> None:
    """Keep a figure for whoever runs the guarantees; otherwise nobody asks for it."""
    reached = Reached(test, figure, counts)
    assert in_words([reached])  # words that lack a count fail in the quick form too
    path = os.environ.get(FIGURES)
    if path:
        with Path(path).open("ab") as file:
            file.write(msgspec.json.encode(reached) + b"\n")
