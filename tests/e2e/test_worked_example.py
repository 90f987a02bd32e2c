"""The worked example of the cost model, counted again. It takes over a minute, so `make test` leaves it out."""

import re

import pytest
from bench.aws_calls.bill import EXAMPLE, Bill
from bench.aws_calls.example import shown
from bench.aws_calls.package import count_package

from docs.pages import ROOT
from docs.test_tables import table

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
"""A link of a page, whose text is its first group."""


@pytest.mark.timeout(3_000)
def test_the_worked_example_is_what_the_calls_cost() -> None:
    """`python -m bench.aws_calls --tasks 10000` prints the rows of the page, and the goals hold."""
    bill = Bill(EXAMPLE, count_package(EXAMPLE))
    assert list(bill.missed()) == []
    rows = table(ROOT / "docs/cost-model.md", "## A worked example")
    assert [[LINK.sub(r"\1", cell.strip(" |")) for cell in row] for row in rows] == shown(bill)
