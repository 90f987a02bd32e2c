"""Crashes before and after each call of a port, on the adapters of AWS."""

from collections.abc import Callable
from pathlib import Path

import pytest

from master.crash.crashing import CrashPoint, Fuse
from master.crash.scenario import Scenario
from master.crash.scenarios import SCENARIOS
from support.scale import some

from .runs import name_of, ran

STEP = 201


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_g09_a_crash_at_any_port_call_loses_and_doubles_nothing(
    scenario: Scenario, tmp_path: Path, reached: Callable[[str], None]
) -> None:
    calls = ran(scenario, tmp_path / "uncrashed", Fuse()).fuse.calls
    every = [CrashPoint(call, side) for call in range(len(calls)) for side in ("before", "after")]
    points = some(every, STEP, 13 * SCENARIOS.index(scenario))
    for at in points:
        assert len(ran(scenario, tmp_path / f"{at.side}-{at.call}", Fuse(at)).crashes) == 1
    reached(f"{scenario.name}, ports on moto: {len(points)} crash points")
