"""Runs of the scenarios on AWS: all that there may be, or samples of them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from aws.in_process import in_process, remove
from master.crash.crashing import Fuse
from master.crash.scenarios import Scenario, run
from master.crash.world import World
from master.stores import SetClock

T = TypeVar("T")

ALL = "CLOUDPAR_ALL_CRASHES"
"""Set by `make crashes`."""


def some(points: Sequence[T], step: int, first: int = 0) -> Sequence[T]:
    """Every so-manyth of them; all for `make crashes`. Scenarios begin alike, so each has another first one."""
    return points if os.environ.get(ALL) else points[first % step :: step]


def ran(scenario: Scenario, folder: Path, fuse: Fuse) -> World:
    """What came of a run on resources of its own: moto searches tables whole."""
    try:
        return run(scenario, in_process, folder, SetClock(), name="run", fuse=fuse)
    finally:
        remove(folder)


def name_of(scenario: Scenario) -> str:
    """For the names of tests."""
    return scenario.name
