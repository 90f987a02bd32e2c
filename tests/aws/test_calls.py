"""The goals of `python -m bench.aws_calls` that can be checked in a minute."""

import pytest
from bench.aws_calls import bill as bills
from bench.aws_calls.abuse import MOST_USD, WITH_RESULTS, abuses
from bench.aws_calls.bill import Bill
from bench.aws_calls.idle import count_idle
from bench.aws_calls.package import Load, count_package

from docs.pages import ROOT

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("load", [Load(1, 1_000), Load(1, 1_000_000), Load(100, 1_000_000), Load(500, 1_000_000)])
def test_a_package_keeps_to_the_goals(load: Load) -> None:
    bill = Bill(load, count_package(load))
    assert list(bill.missed()) == []
    assert bill.by_purpose()["package"]["calls"] > 0


def test_calls_of_functions_have_the_memory_that_the_stack_gives_them() -> None:
    stack = (ROOT / "infra/lib/services.ts").read_text(encoding="utf-8")
    served = stack.partition("const served = {")[2].partition("}")[0]
    assert f"memorySize: {round(bills.CALL_GB * 1024)}," in served


def test_idle_agents_send_few_requests_and_start_soon() -> None:
    idle = count_idle(calm_us=30_000_000)
    assert idle.missed == []
    assert idle.requests_per_s > 1


def test_two_counts_of_a_package_are_equal() -> None:
    load = Load(100, 1_000)
    assert Bill(load, count_package(load)).as_object() == Bill(load, count_package(load)).as_object()


def test_no_request_of_a_client_is_dear() -> None:
    """With 100 packages, a list costs a tenth of what it costs with 1,000, which is most."""
    found = abuses(packages=100)
    assert len(found) == 8
    assert [each.name for each in found if each.usd > MOST_USD / 4] == [WITH_RESULTS]
    assert not found[0].too_dear
