"""AWS throttles, fails, is late and conflicts at every port: every run ends as it should, at a bounded price."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantees.scale import SCALE, Scale
from master.crash.scenarios import SCENARIOS, Scenario

from .runs import name_of, ran
from .storms import BadDay

MOST = 2.0
"""So many times the calls of a good day."""

pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.mark.parametrize("scenario", SCALE(SCENARIOS[:2], SCENARIOS), ids=name_of)
def test_g14_bad_days(scenario: Scenario, tmp_path: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    good, seeds = BadDay(None), range(scale(2, 20))
    ran(scenario, tmp_path / "good", good)
    requests, troubles = 0, Counter[str]()
    for seed in seeds:
        bad = BadDay(seed)
        ran(scenario, tmp_path / str(seed), bad)  # it checks: nothing lost, nothing twice, charged exactly
        requests += bad.requests
        troubles += bad.troubles
    assert set(troubles) >= {"throttled", "failed", "conflicts"}
    times = requests / (good.requests * len(seeds))
    assert times <= MOST
    words = ", ".join(f"{number:,} {trouble}" for trouble, number in sorted(troubles.items()))
    reached(f"{scenario.name}: of {requests:,} calls {words}: 0 lost, 0 duplicates, {times:.2f} times the calls")
