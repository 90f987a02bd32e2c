"""Simulated years: whole systems in one thread, from one seed, with all kinds of faults."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.scale import SCALE

from .bugs import BUGS, RARE, Bug
from .system import DAY_US, run, story

SEEDS = SCALE(24, 5_000)
BLOCK = SCALE(12, 50)
BUGS_SOUGHT = SCALE([bug for bug in BUGS if bug not in RARE], BUGS)

pytestmark = pytest.mark.timeout(SCALE(120, 1_800))


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_g12_nothing_breaks_in_any_seed(first: int, reached: Callable[..., None]) -> None:
    """Masters also die while packages only grow old."""
    ran = [run(seed) for seed in range(first, first + BLOCK)]
    packages, faults = sum(len(books.heads) for books in ran), sum(books.faults for books in ran)
    late_deaths = sum(books.late_deaths for books in ran)
    assert packages
    assert faults > late_deaths > 0
    reached(
        "{seeds:,} seeds, {packages:,} packages, {faults:,} faults ({late:,} deaths of masters when all was done), "
        "{days:,} simulated days, nothing broken",
        seeds=len(ran), packages=packages, faults=faults, late=late_deaths,
        days=sum(books.trace[-1][0] for books in ran) // DAY_US,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_g12_a_seed_replays_identically(seed: int) -> None:
    assert run(seed).trace == run(seed).trace


def test_g12_another_process_replays_identically(reached: Callable[[str], None]) -> None:
    """The process is the command that a failing seed prints. Its hashes differ from those of this one."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONHASHSEED": "17"}
    shown = subprocess.run(
        [sys.executable, "-m", "simulation", "--seed", "5"], env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout.rstrip("\n") == story(run(5))
    reached("a seed replays identically, also in another process")


@pytest.mark.parametrize("bug", BUGS_SOUGHT, ids=lambda bug: str(bug.__name__))
def test_g12_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch, reached: Callable[..., None]) -> None:
    """A failing seed says how to run it again, and fails again in the same way."""
    bug(monkeypatch)
    seed, error = next((seed, error) for seed in range(5_000) if (error := error_of(seed)))
    assert "could not take in" not in str(error)  # the patch of the bug itself raises
    assert any(f"python -m simulation --seed {seed}" in note for note in error.__notes__)
    again = error_of(seed)
    assert again
    assert (str(again), again.__notes__) == (str(error), error.__notes__)
    reached("planted bugs found: {bugs}", bugs=1)


def error_of(seed: int) -> AssertionError | None:
    try:
        run(seed)
    except AssertionError as error:
        return error
    return None
