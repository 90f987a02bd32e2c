"""An idle deployment costs at most 1.00 USD a month, line by line, without free tiers; the dashboard is extra."""

import pytest

from cli.deployment.conftest import TEMPLATE
from cloudpar.deployment import prices, template
from cloudpar.deployment.prices import Shape


def usd(shape: Shape) -> dict[str, float]:
    return {line.name: line.usd for line in prices.idle(shape)}


def test_the_lines_add_up_and_the_dashboard_is_on_its_own() -> None:
    with_dashboard = prices.idle(Shape(dashboards=1))
    assert prices.total(with_dashboard) == pytest.approx(prices.total(prices.idle(Shape())))
    assert [(line.name, line.usd) for line in with_dashboard if line.option] == [("Dashboard", 3.0)]


def test_each_line_of_the_idle_cost_is_computed() -> None:
    lines = usd(Shape())
    assert lines["Alarms"] == 0
    assert lines["Secrets"] == pytest.approx(0.40)
    assert lines["Timer, dead letters"] == pytest.approx(43_800 * 0.5e-6)
    assert lines["Timer, calls"] == pytest.approx(43_800 * 0.2e-6)


def test_a_deployment_with_alarms_costs_at_most_a_dollar_a_month_at_rest() -> None:
    assert prices.total(prices.idle(Shape(alarm_metrics=4, recovery=True))) <= 1.00


@pytest.mark.parametrize(
    ("shape", "more"),
    [
        (Shape(keys=1), 1.0),
        (Shape(secrets=2), 0.4),
        (Shape(alarm_metrics=5), 0.5),
        (Shape(nat_gateways=1), 32.85),
        # Five long polls of 20 s run all month.
        (Shape(queue_sources=1), 5 * 730 * 3600 / 20 * 0.5e-6),
    ],
)
def test_larger_shapes_cost_more(shape: Shape, more: float) -> None:
    assert prices.total(prices.idle(shape)) - prices.total(prices.idle(Shape())) == pytest.approx(more)


def test_the_shape_is_read_off_the_template() -> None:
    shape = template.shape(TEMPLATE)
    assert shape == Shape(alarm_metrics=3, dashboards=0, secrets=1, timers=1, timer_mb=512, queue_sources=1)


def test_recovery_is_read_off_the_template() -> None:
    properties = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
    body = {"Resources": {"Packages": {"Type": "AWS::DynamoDB::Table", "Properties": properties}}}
    assert template.shape(body).recovery


def test_resources_are_read_off_the_template() -> None:
    made = template.made(TEMPLATE)
    assert [each.group for each in made][:3] == ["storage", "storage", "storage"]
    assert {each.type: each.count for each in made}["AWS::Lambda::Function"] == 2
    assert "AWS::CDK::Metadata" not in {each.type for each in made}


def test_retained_resources_are_read_off_the_template() -> None:
    kinds = template.retained(TEMPLATE)
    assert sorted(kinds) == ["Blobs", "Packages", "Token"]


def test_an_hour_of_instances_has_a_price() -> None:
    hour = prices.hour([0.05, None], 1.46, 20)
    assert hour.instances == 0.05
    assert hour.unknown == 1
    assert hour.addresses == pytest.approx(0.01)
    assert hour.volumes == pytest.approx(2 * 20 * 0.08 / 730)
    assert hour.total == pytest.approx(0.05 + 0.01 + 2 * 20 * 0.08 / 730 + 0.002)


def test_larger_instances_cost_in_proportion() -> None:
    assert prices.on_demand_usd("m7g.2xlarge") == pytest.approx(4 * prices.ON_DEMAND_USD["m7g"])
    assert prices.on_demand_usd("m7g.metal") is None
