"""Any order of all that anybody may ask: the services keep to the reference, and answer the same on every adapter."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import get_state_machine_test

from guarantees.scale import SCALE
from master.stores import SetClock

from .machine import Services
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


def run(openings: list[Opening], folder: Path, runs: int, number: int, *, repeats: bool) -> None:
    """Random runs; the number is their seed."""
    the_clock = SetClock()
    with ExitStack() as stack:
        fresh = [stack.enter_context(opening(folder, the_clock)) for opening in openings]

        class Machine(Services):
            clock = the_clock

            @staticmethod
            def open_sides() -> list[Side]:
                return [Side(make(), the_clock) for make in fresh]

        Machine.repeats, Machine.every = repeats, 1 if repeats else 20
        how = settings(
            max_examples=runs, stateful_step_count=STEPS, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), phases=PHASES,
        )  # fmt: skip
        seed(number)(get_state_machine_test(Machine, settings=how))()


@pytest.mark.parametrize("number", range(BLOCKS))
def test_g11_in_memory_and_on_sqlite(number: int, tmp_path: Path, reached: Callable[[str], None]) -> None:
    run([memory, sqlite], tmp_path, RUNS, number, repeats=True)
    reached(f"{BLOCKS * RUNS:,} runs of {STEPS} steps in memory and on SQLite, traces equal")


@pytest.mark.parametrize("number", range(STAND_IN_BLOCKS))
@pytest.mark.parametrize("stand_in", STAND_INS, ids=lambda each: str(each.__name__))
def test_g11_on_stand_ins(stand_in: Opening, number: int, tmp_path: Path, reached: Callable[[str], None]) -> None:
    """Each beside the memory, with which SQLite agrees."""
    run([memory, stand_in], tmp_path, STAND_IN_RUNS, number, repeats=False)
    reached(f"{STAND_IN_BLOCKS * STAND_IN_RUNS} runs on {stand_in.__name__}, traces equal")
