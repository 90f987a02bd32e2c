"""Real clients, whose processes, workers and master are killed, paused and slowed down, record no violation."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

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
