"""How many of the points at which something may break a run of the tests takes."""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

ALL = "CLOUDPAR_ALL_CRASHES"
"""Set by `make crashes`."""


def some(points: Sequence[T], step: int, first: int) -> Sequence[T]:
    """Every so-manyth of them; all for `make crashes`. Scenarios begin alike, so each has another first one."""
    return points if os.environ.get(ALL) else points[first % step :: step]
