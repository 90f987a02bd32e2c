"""How much a guarantee's test does: the quick form in `make test`, the figure that is asked under `make guarantees`."""

import os
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


class Reached(msgspec.Struct):
    """What a test saw, in the words of the figure that is asked."""

    test: str
    figure: str


def record(test: str, figure: str) -> None:
    """Keep a figure for whoever runs the guarantees; otherwise nobody asks for it."""
    path = os.environ.get(FIGURES)
    if path:
        with Path(path).open("ab") as file:
            file.write(msgspec.json.encode(Reached(test, figure)) + b"\n")
