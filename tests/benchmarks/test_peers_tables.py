"""The tables of bench/peers are readable in a terminal of 80 columns."""

import io

from bench.peers.engines import NAMES, PEERS
from bench.peers.outcomes import Outcome, Outcomes, left_out
from bench.peers.rows import ROWS
from bench.peers.tables import amount, tables
from rich.console import Console


def shown(outcomes: Outcomes) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(tables(outcomes, list(ROWS), NAMES))
    return out.getvalue()


def filled() -> Outcomes:
    """Outcomes with large numbers, in which one engine fails wherever it is run."""
    outcomes: Outcomes = {}
    for row in ROWS:
        outcomes[row.name] = {peer.name: Outcome(left_out=left_out(peer, row)) for peer in PEERS}
        for number, outcome in enumerate(outcomes[row.name].values(), 1):
            outcome.add({figure.name: 1_234.5 * number for figure in row.figures})
        outcomes[row.name]["ray"].error = "RuntimeError: no"
    return outcomes


def test_all_columns_fit_and_no_heading_is_cut() -> None:
    text = shown(filled())
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text
    for row in ROWS:
        for figure in row.figures:
            assert figure.heading in text


def test_a_failure_is_shown_in_its_cells_and_its_reason_once_for_each_table() -> None:
    outcomes = filled()
    text = shown(outcomes)
    assert text.count("failed") == sum(len(row.figures) for row in ROWS if not outcomes[row.name]["ray"].left_out)
    assert text.count("RuntimeError: no") == len({row.group for row in ROWS})


def test_numbers_have_three_digits() -> None:
    assert [amount(value) for value in (0.000123, 0.5, 12.345, 99.96, 123.4, 1_234_567)] == [
        "0.000123", "0.500", "12.3", "100", "123", "1,234,567",
    ]  # fmt: skip
