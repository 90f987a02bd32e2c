"""The page of the guarantees, the tests that carry their numbers, and the listed lines agree."""

import ast
import re

import pytest
from click.testing import CliRunner

from interleavings.scenarios import SCENARIOS, STATES

from . import mutants_core
from .__main__ import READ
from .mutants import Mutant, mutants
from .mutants import main as break_lines
from .promises import ROOT, Promise, promises
from .survivors import SURVIVORS


def test_the_guarantees_are_numbered_without_a_gap() -> None:
    assert [promise.number for promise in promises()] == [*range(1, 27), *range(28, 32)]  # 27 is reserved


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: str(promise.number))
def test_each_guarantee_has_tests(promise: Promise) -> None:
    assert promise.files


def test_pages_that_guarantees_read_are_part_of_the_fingerprint() -> None:
    """Otherwise a guarantee would not run again when these pages change."""
    tests = [path.read_text() for promise in promises() for path in promise.files]
    assert {name for text in tests for name in re.findall(r'"(docs/[^"]+)"', text)} == set(READ)


def test_the_page_gives_the_number_of_scenarios_and_of_their_states() -> None:
    (promise,) = [each for each in promises() if each.number == 26]
    assert f"in {len(SCENARIOS)} scenarios" in promise.asked
    assert f"over {STATES:,} different states" in promise.asked


def test_lines_of_the_first_nine_are_listed() -> None:
    assert {mutant.number for mutant in mutants()} == set(range(1, 10))


@pytest.mark.parametrize("number", [-1, 0, 10, 22, 99])
def test_a_guarantee_without_listed_lines_is_refused(number: int) -> None:
    """Without this error, a run that breaks no line would count as a success."""
    refused = CliRunner().invoke(break_lines, [f"--only={number}"])
    assert refused.exit_code == 2
    assert f"no line is listed for {number}: there are some for 1 to 9" in refused.output


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: f"{mutant.number} {mutant.path}")
def test_each_listed_line_is_in_its_file_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.path).read_text().count(mutant.line) == 1


def test_each_listed_survivor_is_a_change_that_the_command_makes() -> None:
    files = (ROOT / mutants_core.CORE).rglob("*.py")
    made = {(each.name, each.line, each.changed) for path in files for each in mutants_core.mutants(path)}
    assert SURVIVORS.keys() <= made


def test_each_change_of_the_core_is_valid_python() -> None:
    """A change that Python refuses would count as noticed, whatever the tests verify."""
    changes = [each for path in (ROOT / mutants_core.CORE).rglob("*.py") for each in mutants_core.mutants(path)]
    assert len(changes) > 500
    for each in changes:
        ast.parse(each.text)
