"""What one token can cost, counted again. It takes some minutes, so `make test` leaves it out."""

import pytest
from bench.aws_calls.abuse import WITH_RESULTS, abuses

from docs.pages import ROOT
from docs.test_tables import table


@pytest.mark.timeout(3_000)
def test_the_dearest_requests_of_a_token_cost_what_the_cost_model_says() -> None:
    found = abuses()
    assert found[0].name == WITH_RESULTS  # on which the page's table of floods depends
    assert not any(each.too_dear for each in found)
    rows = table(ROOT / "docs/cost-model.md", "## What one token can cost")
    assert [row[1].rstrip(" |") for row in rows] == [f"{each.usd * 1e6:.1f}" for each in found]
