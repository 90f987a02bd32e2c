"""Real clients, whose processes, workers and master are killed, paused and slowed down, record no violation."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from histories.bugs import BUGS
from histories.run import report, run
from support.scale import SCALE, Scale

SEEDS = range(SCALE(1, 20))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_g28_a_history_of_real_clients(seed: int, tmp_path: Path, scale: Scale, reached: Callable[..., None]) -> None:
    judged = run(tmp_path, str(seed), seconds=scale(5, 60), every_s=scale(1.2, 2.0))
    assert not judged.violations, report(str(seed), judged)
    answered = Counter(call.route for call in judged.calls if call.ok)
    assert all(answered[route] for route in ("start_tasks", "await_tasks", "list_accounts", "hello"))
    reached(
        "{runs} histories of {calls:,} calls under {faults} faults: no violation",
        runs=1, calls=len(judged.calls), faults=judged.faults,
    )  # fmt: skip


@pytest.mark.timeout(900)
@pytest.mark.parametrize("bug", BUGS)
def test_g28_a_bug_of_the_master_shows_in_the_histories(bug: str, tmp_path: Path, reached: Callable[..., None]) -> None:
    """A checker that never finds a violation would prove nothing."""
    assert run(tmp_path, bug, seconds=5, every_s=1.2, bug=bug).violations
    reached("planted bugs found: {bugs}", bugs=1)
