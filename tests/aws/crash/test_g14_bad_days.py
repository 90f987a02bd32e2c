"""AWS throttles, fails, answers late and reports conflicts; every run ends correctly, at a bounded price."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from master.crash.scenario import Scenario
from master.crash.scenarios import SCENARIOS
from support.scale import SCALE, Scale

from .runs import name_of, ran
from .storms import SHARES, BadDay

DAYS = SCALE(2, 60)
"""How many bad days. In the full form rare requests are disturbed too, and time-outs do not depend on luck."""

MOST = 2.0
"""A bad day may take at most this many times the calls of a good day."""

pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.mark.parametrize("scenario", SCALE(SCENARIOS[:2], SCENARIOS), ids=name_of)
def test_g14_runs_on_bad_days_of_aws_end_correctly(
    scenario: Scenario, tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    good, bad = BadDay(None), [BadDay(seed) for seed in range(DAYS)]
    ran(scenario, tmp_path / "good", good)
    for seed, day in enumerate(bad):
        # The run itself checks that nothing is lost, doubled or charged wrongly.
        ran(scenario, tmp_path / str(seed), day)
    requests = sum(day.requests.total() for day in bad)
    kinds, services = Counter[str](), Counter[str]()
    for (service, kind), number in sum((day.disturbances for day in bad), Counter[tuple[str, str]]()).items():
        kinds[kind] += number
        services[service] += number
    assert kinds["conflicts"] >= len(bad)
    assert set(services) >= scale({"dynamodb", "sqs"}, set(good.requests))
    assert set(kinds) >= scale({"throttled", "failed"}, set(SHARES))
    for kind, share in SHARES.items():
        assert kinds[kind] >= scale(0.0, share / 2) * requests, kind
    times = [day.requests.total() / good.requests.total() for day in bad]
    average = sum(times) / len(times)
    words = ", ".join(f"{number:,} {disturbance}" for disturbance, number in sorted(kinds.items()))
    ports = ", ".join(f"{number:,} at {service}" for service, number in sorted(services.items()))
    reached(
        f"{scenario.name}: of {requests:,} calls {words} ({ports}): 0 lost, 0 duplicates, "
        f"{average:.2f} times the calls on average, {max(times):.2f} times on the worst of {len(bad)} days"
    )
    assert max(times) <= MOST
