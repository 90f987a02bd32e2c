"""The fleet on AWS in simulated days: it is never stuck without hosts nor too large, and idle hosts end."""

from collections.abc import Callable

import pytest

from support.scale import SCALE

from .fleet_days import FleetDay

DAYS = SCALE(200, 10_000)
BLOCK = SCALE(100, 500)

pytestmark = pytest.mark.timeout(SCALE(120, 1_800))


@pytest.mark.parametrize("first", range(0, DAYS, BLOCK))
def test_g29_the_fleet_follows_the_work_in_every_day(first: int, reached: Callable[..., None]) -> None:
    days = [FleetDay(seed).run() for seed in range(first, first + BLOCK)]
    raises, failed, taken = (sum(getattr(day, what) for day in days) for what in ("raises", "failed", "taken"))
    ended = sum(day.ended_idle for day in days)
    assert min(raises, failed, taken, ended) > 0
    reached(
        "{days:,} simulated days: the fleet grew {raises:,} times, and {ended:,} hosts ended themselves, although "
        "{failed:,} calls of AWS failed and AWS took {taken:,} hosts away",
        days=len(days), raises=raises, ended=ended, failed=failed, taken=taken,
    )  # fmt: skip
