"""Every interleaving of the port calls of small deployments, with crashes, within a bound of switches."""

from collections.abc import Callable

import pytest

from support.checks import Broken
from support.scale import SCALE

from .bugs import PLANTED, Planted
from .exploration import explore
from .pairs import pairs
from .scenario import Scenario
from .scenarios import SCENARIOS, SPECIAL, STATES

QUICK = [*SPECIAL, *pairs()[::40]]

pytestmark = pytest.mark.timeout(SCALE(120, 3_600))


@pytest.mark.parametrize("scenario", SCALE(QUICK, SCENARIOS), ids=lambda scenario: str(scenario.name))
def test_g26_no_interleaving_breaks_a_scenario(scenario: Scenario, reached: Callable[..., None]) -> None:
    found = explore(scenario, SCALE(1, scenario.deviations))
    assert found.ends
    reached(
        "{scenarios:,} scenarios, {states:,} states, {ends:,} of them final", scenarios=1, states=found.states,
        ends=found.ends, least={"scenarios": len(SCENARIOS), "states": STATES},
    )  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: str(planted.bug.__name__))
def test_g26_a_planted_bug_is_found(
    planted: Planted, monkeypatch: pytest.MonkeyPatch, reached: Callable[..., None]
) -> None:
    (scenario,) = [scenario for scenario in SCENARIOS if scenario.name == planted.scenario]
    planted.bug(monkeypatch)
    with pytest.raises(Broken) as broken:
        explore(scenario, planted.deviations)
    assert f"scenario: {planted.scenario}" in broken.value.__notes__
    # With these words, the patch of the bug itself has raised, and the checks have found nothing.
    assert not {words for words in ("the master failed", "could not take in") if words in str(broken.value)}
    reached("planted bugs found: {bugs}", bugs=1)


def test_g26_an_exploration_is_the_same_each_time() -> None:
    assert explore(SPECIAL[0], 1) == explore(SPECIAL[0], 1)
