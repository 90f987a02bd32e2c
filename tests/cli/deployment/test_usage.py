"""`cloudpar usage --stack`: charges with their cost at AWS's prices."""

import json
from typing import Any

import pytest
from msgspec import to_builtins

from cli.deployment.conftest import TEMPLATE, outputs
from cli.deployment.stand_in import NAME, StandIn
from cli.here import Here
from cloudpar.deployment import prices
from cloudpar_protocol.account_messages import ListUsageReply, Usage

HOUR_US = 3_600_000_000
SHARE = (30 * prices.VOLUME_GB_USD / prices.HOURS + prices.ADDRESS_HOUR_USD) / 2
"""What an executor of an instance of size `large` costs for the volume, which has 30 GiB in the template, and the
address."""


def group(on_demand: int = 0) -> dict[str, Any]:
    overrides = [{"InstanceType": kind} for kind in ("c7g.large", "c8g.large")]
    policy = {
        "LaunchTemplate": {"Overrides": overrides}, "InstancesDistribution": {"OnDemandBaseCapacity": on_demand},
    }  # fmt: skip
    fleet = {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "Properties": {"MaxSize": "4", "MixedInstancesPolicy": policy},
    }
    return {"Resources": TEMPLATE["Resources"] | {"Group": fleet}}


@pytest.fixture
def deployed(aws: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Make a stack on which account a1 has used two hours."""
    aws.template = group()
    aws.deploy(outputs())
    others = aws.account_function
    reply = ListUsageReply(usage=[Usage(account_id="a1", day="2026-11-24", charged_us=2 * HOUR_US, packages=5)])

    def account_function(event: dict[str, Any]) -> Any:
        if event["route"] == "list_usage":
            return {"status": 200, "body": json.loads(json.dumps(to_builtins(reply)))}
        return others(event)

    aws.account_function = account_function
    aws.group = {}
    aws.spot_prices = {("c7g.large", "a"): 0.03, ("c7g.large", "b"): 0.05, ("c8g.large", "a"): 0.04}
    return aws


def test_the_estimate_uses_the_median_of_the_spot_prices_with_volume_and_address(deployed: StandIn, here: Here) -> None:
    found = here.json("usage", "--stack", NAME)
    assert found["executor_usd"] == pytest.approx(0.04 / 2 + SHARE, abs=1e-6)
    (used,) = found["usage"]
    assert (used["account_id"], used["account"], used["packages"], used["compute_s"]) == ("a1", "a1", 5, 7200)
    assert used["usd"] == pytest.approx(2 * found["executor_usd"], abs=1e-6)
    out = here("usage", "--stack", NAME).out
    assert "2026-11-24 a1" in out
    assert "USD: estimated, at 0.02" in out


def test_a_fleet_that_is_all_on_demand_counts_at_list_prices(deployed: StandIn, here: Here) -> None:
    deployed.template = group(on_demand=4)
    dear = (prices.ON_DEMAND_USD["c7g"] + prices.ON_DEMAND_USD["c8g"]) / 2
    assert here.json("usage", "--stack", NAME)["executor_usd"] == pytest.approx(dear / 2 + SHARE, abs=1e-6)


def test_without_prices_there_is_no_estimate(deployed: StandIn, here: Here) -> None:
    deployed.refusals["DescribeSpotPriceHistory"] = ("UnauthorizedOperation", "no")
    found = here.json("usage", "--stack", NAME)
    assert (found["executor_usd"], found["usage"][0]["usd"]) == (None, None)


def test_a_price_that_the_operator_names_is_used(deployed: StandIn, here: Here) -> None:
    assert here.json("usage", "--stack", NAME, "--executor-usd", "1")["usage"][0]["usd"] == 2
