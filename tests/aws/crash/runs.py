"""Runs the crash scenarios on the adapters of AWS."""

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from aws.in_process import in_process, remove
from master.crash.crashing import CrashPoint, Fuse, Side
from master.crash.scenario import Scenario
from master.crash.scenarios import run
from master.crash.world import World
from support.clock import SetClock

from .branches import Branches
from .breaking import AwsFuse, Break, Kind
from .room import with_room


def ran(scenario: Scenario, folder: Path, fuse: Fuse) -> World:
    """Run a scenario on resources of its own, since moto scans whole tables."""
    try:
        return _run(scenario, folder, fuse)
    finally:
        remove(folder)


def _run(scenario: Scenario, folder: Path, fuse: Fuse) -> World:
    return with_room(lambda: run(scenario, in_process, folder, SetClock(), name="run", fuse=fuse))


class _Crashes(Fuse):
    """Crashes at each of some points, each in a branch of its own."""

    def __init__(self, points: Sequence[CrashPoint], branches: Branches) -> None:
        super().__init__()
        self._points = set(points)
        self._branches = branches

    def dies(self, number: int, side: Side) -> bool:
        at = CrashPoint(number, side)
        return not self._branches.is_branch and at in self._points and self._branches.branch(str(at))


class _Breaks(AwsFuse):
    """Breaks calls of AWS in each of some ways, each in a branch of its own."""

    def __init__(self, points: Sequence[Break], branches: Branches) -> None:
        super().__init__()
        self._kinds = {call: [at.kind for at in group] for call, group in groupby(points, attrgetter("call"))}
        self._branches = branches

    def choose(self, number: int) -> Kind | None:
        kinds = [] if self._branches.is_branch else self._kinds.get(number, [])
        return next((kind for kind in kinds if self._branches.branch(f"call {number} {kind}")), None)


def crash_each(scenario: Scenario, folder: Path, points: Sequence[CrashPoint]) -> None:
    """Crash a scenario at each of these points, and let it go on to its end."""
    branches = Branches()
    fuse = _Crashes(points, branches)

    def go() -> None:
        assert len(_run(scenario, folder, fuse).crashes) == branches.is_branch

    _make(go, folder, branches, len(points))


def break_each(scenario: Scenario, folder: Path, points: Sequence[Break], *, away_s: float = 0.0) -> None:
    """Break each of these calls of a scenario, and let it go on to its end.

    Args:
        away_s: Seconds between a crash and the start of the next process.
    """
    branches = Branches()
    fuse = _Breaks(points, branches)
    fuse.away_s = away_s

    def go() -> None:
        _run(scenario, folder, fuse)
        assert fuse.broken == branches.is_branch

    _make(go, folder, branches, len(points))


def _make(go: Callable[[], None], folder: Path, branches: Branches, wanted: int) -> None:
    try:
        branches.run(go)
    finally:
        remove(folder)
    assert branches.ended == wanted > 0


def name_of(scenario: Scenario) -> str:
    return scenario.name
