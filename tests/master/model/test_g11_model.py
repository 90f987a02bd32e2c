"""Any requests in any order: the services keep to the reference, and answer the same on every adapter."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import get_state_machine_test

from support.clock import SetClock
from support.scale import SCALE

from .machine import Services, Tally
from .sides import Opening, Side, memory, sqlite
from .stand_ins import ministack, moto, real_engines

STEPS = 50
PHASES = SCALE([Phase.generate], [Phase.generate, Phase.shrink])
BLOCKS = SCALE(2, 100)
RUNS = SCALE(20, 100)
STAND_IN_RUNS = SCALE(2, 25)
STAND_IN_BLOCKS = SCALE(1, 4)
STAND_INS: list[Opening] = SCALE([moto], [moto, real_engines, ministack])

pytestmark = pytest.mark.timeout(SCALE(120, 1_800))


def run(openings: list[Opening], folder: Path, runs: int, number: int, *, repeats: bool) -> Tally:
    """Make random runs; the number is their seed.

    Hypothesis may give up early. Its health checks, which would report that, are off, so the runs are counted here.
    `_min_steps` keeps it from ending many variations of an earlier run after a few steps.
    """
    the_clock = SetClock()
    with ExitStack() as stack:
        fresh = [stack.enter_context(opening(folder, the_clock)) for opening in openings]

        class Machine(Services):
            clock, tally, length = the_clock, Tally(), STEPS

            @staticmethod
            def open_sides() -> list[Side]:
                return [Side(make(), the_clock) for make in fresh]

        Machine.repeats, Machine.every = repeats, 1 if repeats else 20
        how = settings(
            max_examples=runs, stateful_step_count=STEPS, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), phases=PHASES,
        )  # fmt: skip
        seed(number)(get_state_machine_test(Machine, settings=how, _min_steps=STEPS))()
    assert Machine.tally.runs >= runs
    return Machine.tally


@pytest.mark.parametrize("number", range(BLOCKS))
def test_g11_services_answer_the_same_in_memory_and_on_sqlite(
    number: int, tmp_path: Path, reached: Callable[..., None]
) -> None:
    tally = run([memory, sqlite], tmp_path, RUNS, number, repeats=True)
    words = f"{{runs:,}} runs of {STEPS} steps, {{steps:,}} in all, in memory and on SQLite, traces equal"
    reached(words, runs=tally.runs, steps=tally.steps)


@pytest.mark.parametrize("number", range(STAND_IN_BLOCKS))
@pytest.mark.parametrize("stand_in", STAND_INS, ids=lambda each: str(each.__name__))
def test_g11_services_answer_the_same_on_stand_ins(
    stand_in: Opening, number: int, tmp_path: Path, reached: Callable[..., None]
) -> None:
    """Each stand-in is compared with the memory, with which SQLite agrees."""
    tally = run([memory, stand_in], tmp_path, STAND_IN_RUNS, number, repeats=False)
    words = f"{{runs:,}} runs of {STEPS} steps on {stand_in.__name__}, traces equal"
    reached(words, runs=tally.runs)
