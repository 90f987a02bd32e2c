"""The master dies before and after every single port call of a run: after its restart the run ends as it should."""

from collections.abc import Callable
from pathlib import Path

import pytest

from master.stores import FACTORIES, Factory, SetClock

from .crashing import CrashPoint, Fuse
from .scenarios import SCENARIOS, Scenario, run


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: str(factory.__name__))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_g09_every_crash_point(
    scenario: Scenario, factory: Factory, tmp_path: Path, reached: Callable[[str], None]
) -> None:
    clock = SetClock()
    calls = run(scenario, factory, tmp_path, clock, name="without").fuse.calls
    for call in range(len(calls)):
        for side in ("before", "after"):
            fuse = Fuse(CrashPoint(call, side))
            world = run(scenario, factory, tmp_path, clock, name=f"{side}{call}", fuse=fuse)
            assert len(world.crashes) == 1
    reached(f"{scenario.name}, {factory.__name__}: {2 * len(calls)} crash points")
