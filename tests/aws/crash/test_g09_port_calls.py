"""Crashes before and after each call of a port, on the adapters of AWS."""

from collections.abc import Callable
from pathlib import Path

import pytest

from master.crash.crashing import Fuse, crash_points
from master.crash.scenario import Scenario
from master.crash.scenarios import SCENARIOS
from support.scale import some

from .runs import crash_each, name_of, ran

STEP = 201


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_g09_a_crash_at_any_port_call_loses_and_doubles_nothing(
    scenario: Scenario, tmp_path: Path, reached: Callable[[str], None]
) -> None:
    uncrashed = ran(scenario, tmp_path / "uncrashed", Fuse()).fuse
    points = some(crash_points(uncrashed, rival=scenario.rival), STEP, 13 * SCENARIOS.index(scenario))
    crash_each(scenario, tmp_path / "crashed", points)
    reached(f"{scenario.name}, ports on moto: {len(points)} crash points")
