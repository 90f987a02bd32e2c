"""The page of benchmarks names all programs, and why some are slower."""

import re
from collections.abc import Iterator

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
    shown = [tuple(cell.rstrip(" |") for cell in row) for row in table(PAGE, "## Small workloads on more libraries")]
    assert shown == [(row.name, row.what) for row in ROWS]


def test_the_table_of_engines_says_how_each_is_used() -> None:
    shown = [tuple(cell.rstrip(" |") for cell in row) for row in table(PAGE, "### How each library is used")]
    assert shown == [(peer.name, peer.choice) for peer in PEERS]
