"""The page of benchmarks names all programs, and why some are slower."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from bench.peers import __main__ as bench_peers
from bench.peers import outcomes, taps_runs
from bench.peers.engines import PEERS
from bench.peers.rows import ROWS

from docs.pages import ROOT
from docs.test_tables import table

PAGE = ROOT / "docs/benchmarks.md"
LIMIT = 1.5
_PROGRAM = re.compile(r'^    (Program|Expectation)\("([a-z-]+)", "([^"]+)"', re.MULTILINE)


def programs(kind: str) -> Iterator[tuple[str, str]]:
    """Yield name and line of each program. This reads the sources, since their libraries are in another venv."""
    for path in (ROOT / "bench/programs").glob("*.py"):
        for found, name, what in _PROGRAM.findall(path.read_text(encoding="utf-8")):
            if found == kind:
                yield name, what


def test_the_table_of_times_has_every_program_and_no_other() -> None:
    assert sorted((row[0], row[1]) for row in table(PAGE, "## Time")) == sorted(programs("Program"))


def test_the_table_of_behaviour_has_every_program_and_no_other() -> None:
    shown = sorted((row[0], row[1].rstrip(" |")) for row in table(PAGE, "## Behaviour"))
    assert shown == sorted(programs("Expectation"))


def test_each_program_that_is_much_slower_than_joblib_has_a_reason_and_no_other() -> None:
    slow = [row[0] for row in table(PAGE, "## Time") if float(row[2]) > LIMIT]
    section = PAGE.read_text(encoding="utf-8").partition("## Why some are slower")[2].partition("\n## ")[0]
    assert re.findall(r"^- `([a-z-]+)`: ", section, re.MULTILINE) == slow


def test_the_table_of_rows_has_every_row_of_small_workloads() -> None:
    shown = [tuple(cell.rstrip(" |") for cell in row) for row in table(PAGE, "### What the rows measure")]
    assert shown == [(row.name, row.what) for row in ROWS]


def test_the_table_of_engines_says_how_each_is_used() -> None:
    shown = [tuple(cell.rstrip(" |") for cell in row) for row in table(PAGE, "### How each library is used")]
    assert shown == [(peer.name, peer.choice) for peer in PEERS]


def test_the_table_of_left_out_engines_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "LINUX", True)
    rows: dict[tuple[str, str], list[str]] = {}
    for peer in PEERS:
        for row in ROWS:
            if why := outcomes.left_out(peer, row):
                rows.setdefault((peer.name, why), []).append(row.name)
    engines: dict[tuple[str, str], list[str]] = {}
    for (engine, why), names in rows.items():
        engines.setdefault((", ".join(names), why), []).append(engine)
    shown = [tuple(cell.rstrip(" |") for cell in row) for row in table(PAGE, "### Engines that are left out")]
    assert shown == [(", ".join(each), names, why) for (names, why), each in engines.items()]


def test_the_table_of_options_has_every_option_that_make_has_no_variable_for() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Small workloads on more libraries")[2]
    shown = re.findall(r"^\| `(--[a-z-]+)` \|", section, re.MULTILINE)
    options = [name for option in bench_peers.main.params for name in option.opts]
    assert sorted(["--only", "--engines", *shown]) == sorted(options)


@pytest.mark.parametrize(("target", "command"), [("bench-peers", bench_peers.main), ("bench-taps", taps_runs.main)])
def test_each_example_of_options_is_accepted_and_make_passes_options(target: str, command: click.Command) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    assert "$(OPTIONS)" in recipe[1]
    section = PAGE.read_text(encoding="utf-8").partition("## Small workloads on more libraries")[2]
    peers, _, taps = section.partition("### Applications of TaPS")
    examples = re.findall(r'OPTIONS="([^"]+)"', peers if target == "bench-peers" else taps)
    assert examples
    for example in examples:
        command.make_context(target, shlex.split(example))
