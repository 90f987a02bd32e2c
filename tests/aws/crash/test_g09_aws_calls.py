"""At each single call of AWS the master crashes, is refused, or gets no answer; every run still ends correctly."""

from collections.abc import Callable
from pathlib import Path

import pytest

from master.crash.scenario import Scenario
from master.crash.scenarios import SCENARIOS, WORK
from support.scale import SCALE, some

from .breaking import AwsFuse, Break, Unreliable, breaks
from .runs import break_each, name_of, ran

STEP = 121
SEEDS = range(20)
DEDUPLICATION_S = 300.0

pytestmark = pytest.mark.usefixtures("no_waiting")


def unbroken(scenario: Scenario, folder: Path) -> AwsFuse:
    fuse = AwsFuse()
    ran(scenario, folder / "unbroken", fuse)
    return fuse


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_g09_every_call_of_aws(scenario: Scenario, tmp_path: Path, reached: Callable[[str], None]) -> None:
    step = STEP if scenario in WORK else 2 * STEP
    points = some(breaks(unbroken(scenario, tmp_path), rival=scenario.rival), step, SCENARIOS.index(scenario))
    break_each(scenario, tmp_path / "broken", points)
    reached(f"{scenario.name}, calls of AWS: {len(points)} breaks")


@pytest.mark.parametrize("scenario", [each for each in SCALE(WORK, SCENARIOS) if not each.rival], ids=name_of)
def test_chunks_are_sent_again_after_the_queues_deduplication_time(scenario: Scenario, tmp_path: Path) -> None:
    """The chunks were sent, but no master recorded it: they are sent and received twice. (A rival would send them.)"""
    sends = [number for number, call in enumerate(unbroken(scenario, tmp_path).calls) if call == "SendMessageBatch"]
    assert sends
    points = [Break(number, "dies after") for number in some(sends, len(sends))]
    break_each(scenario, tmp_path / "broken", points, away_s=DEDUPLICATION_S + 1)


@pytest.mark.parametrize("seed", some(SEEDS, len(SEEDS)))
@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if not each.mortal], ids=name_of)
def test_runs_end_correctly_under_repeated_disturbances(scenario: Scenario, seed: int, tmp_path: Path) -> None:
    """No worker crashes here: with so many crashes the master would rightly give tasks up."""
    fuse = Unreliable(seed)
    ran(scenario, tmp_path, fuse)
    assert fuse.broken > 1
