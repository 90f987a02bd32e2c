"""The master dies at every different point between the port calls of a run, and the run ends as it should.

A crash before a call equals one after the call before it. So the master dies after each call, and before the first call
of each request; if another process changes what is stored meanwhile, before each call.
"""

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
"""The quick form tries one crash point of so many. It is odd, so that scenarios with a rival, whose points are before
and after calls in turn, crash at both."""


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: str(factory.__name__))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_g09_a_run_ends_well_after_a_crash_at_any_point(
    scenario: Scenario, factory: Factory, tmp_path: Path, reached: Callable[[str], None]
) -> None:
    clock = SetClock()
    uncrashed = run(scenario, factory, tmp_path, clock, name="without").fuse
    points = some(crash_points(uncrashed, rival=scenario.rival), STEP, SCENARIOS.index(scenario))
    assert points
    for at in points:
        world = run(scenario, factory, tmp_path, clock, name=f"{at.side}{at.call}", fuse=Fuse(at))
        assert len(world.crashes) == 1
    reached(f"{scenario.name}, {factory.__name__}: {len(points)} crash points")
