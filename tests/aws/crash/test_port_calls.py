"""The crash points of the ports, on the adapters of AWS."""

from pathlib import Path

import pytest

from aws.in_process import in_process
from master.crash.crashing import CrashPoint, Fuse
from master.crash.scenarios import SCENARIOS, Scenario, run
from master.stores import SetClock

from .choice import some

STEP = 101


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_every_crash_point(scenario: Scenario, tmp_path: Path) -> None:
    calls = run(scenario, in_process, tmp_path / "without", SetClock(), name="without").fuse.calls
    points = [CrashPoint(call, side) for call in range(len(calls)) for side in ("before", "after")]
    for at in some(points, STEP, 13 * SCENARIOS.index(scenario)):
        name = f"{at.side}-{at.call}"
        world = run(scenario, in_process, tmp_path / name, SetClock(), name=name, fuse=Fuse(at))
        assert len(world.crashes) == 1
