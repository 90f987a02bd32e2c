"""The master dies before and after every port call of a run: after its restart the run ends as it should."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.clock import SetClock
from support.scale import some
from support.stores import FACTORIES, Factory

from .crashing import Fuse, crash_points
from .scenario import Scenario
from .scenarios import SCENARIOS, run

STEP = 5
"""The quick form tries one crash point of so many."""


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: str(factory.__name__))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_g09_a_run_ends_well_after_a_crash_at_any_point(
    scenario: Scenario, factory: Factory, tmp_path: Path, reached: Callable[[str], None]
) -> None:
    clock = SetClock()
    uncrashed = run(scenario, factory, tmp_path, clock, name="without").fuse
    points = some(crash_points(uncrashed, rival=scenario.rival), STEP, SCENARIOS.index(scenario))
    for at in points:
        world = run(scenario, factory, tmp_path, clock, name=f"{at.side}{at.call}", fuse=Fuse(at))
        assert len(world.crashes) == 1
    reached(f"{scenario.name}, {factory.__name__}: {len(points)} crash points")
