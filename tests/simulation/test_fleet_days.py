"""The fleet on AWS in simulated days: it is never stuck without hosts nor too large, and idle hosts end."""

import pytest

from guarantees.scale import SCALE

from .fleet_days import FleetDay

DAYS = SCALE(300, 10_000)
BLOCK = SCALE(100, 500)

pytestmark = pytest.mark.timeout(SCALE(120, 1_800))


@pytest.mark.parametrize("first", range(0, DAYS, BLOCK))
def test_the_fleet_follows_the_work_in_every_day(first: int) -> None:
    days = [FleetDay(seed).run() for seed in range(first, first + BLOCK)]
    for what in ("raises", "failed", "taken", "ended_idle"):
        assert sum(getattr(day, what) for day in days), f"no day had any of {what}"
