"""Runs of the scenarios on AWS: all that there may be, or samples of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from aws.in_process import in_process, remove
from guarantees.scale import SCALE
from master.crash.crashing import Fuse
from master.crash.scenarios import Scenario, run
from master.crash.world import World
from master.stores import SetClock

T = TypeVar("T")


def some(points: Sequence[T], step: int, first: int = 0) -> Sequence[T]:
    """Every so-manyth of them; all in the full form. Scenarios begin alike, so each has another first one."""
    return points if SCALE.full else points[first % step :: step]


def ran(scenario: Scenario, folder: Path, fuse: Fuse) -> World:
    """What came of a run on resources of its own: moto searches tables whole."""
    try:
        return run(scenario, in_process, folder, SetClock(), name="run", fuse=fuse)
    finally:
        remove(folder)


def name_of(scenario: Scenario) -> str:
    """For the names of tests."""
    return scenario.name
