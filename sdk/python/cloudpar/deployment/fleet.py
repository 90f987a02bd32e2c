from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from .aws import Aws
from .failures import AwsRefused
from .prices import on_demand_usd

FAILED = {"Failed", "Cancelled", "WaitingForSpotInstanceId"}


class Instance(msgspec.Struct, frozen=True):
    """One instance of the fleet. `usd` is its price per hour, or None if that is unknown."""

    id: str
    type: str
    zone: str
    state: str
    spot: bool
    usd: float | None


class Fleet(msgspec.Struct, frozen=True):
    """The Auto Scaling group of the workers.

    Attributes:
        desired: The number of instances that the group wants now.
        maximum: The largest number of instances that the group may have.
        running: The number of instances in service.
        starting: The number of wanted instances that are not in service yet.
        instances: All instances of the group, in any state.
        reason: AWS's text about the failure or the delay of the newest launch. None if the launch did not fail and is
            not delayed, or if no instance is starting.
    """

    desired: int
    maximum: int
    running: int
    starting: int
    instances: list[Instance]
    reason: str | None


def read(aws: Aws, group: str) -> Fleet | None:
    """Read the state of the fleet; None if there is no such group."""
    found = aws.call("autoscaling", "describe_auto_scaling_groups", AutoScalingGroupNames=[group])["AutoScalingGroups"]
    if not found:
        return None
    members = found[0]["Instances"]
    running = sum(each["LifecycleState"] == "InService" for each in members)
    desired = int(found[0]["DesiredCapacity"])
    starting = max(0, desired - running)
    reason = None
    if starting:
        activities = aws.call("autoscaling", "describe_scaling_activities", AutoScalingGroupName=group, MaxRecords=20)
        reason = failure(activities["Activities"])
    return Fleet(desired, int(found[0]["MaxSize"]), running, starting, _instances(aws, members), reason)


def failure(activities: Iterable[Mapping[str, Any]]) -> str | None:
    """Return AWS's text about the failure or the delay of the newest launch; None if there is neither.

    The newest activity must come first.

    >>> failure([{"Description": "Launching a new EC2 instance.", "StatusCode": "Failed", "StatusMessage": "No spot."}])
    'No spot.'
    """
    for activity in activities:
        if activity["Description"].startswith("Launching"):
            failed = activity["StatusCode"] in FAILED
            return (activity.get("StatusMessage") or activity["StatusCode"]) if failed else None
    return None


def _instances(aws: Aws, members: list[Mapping[str, Any]]) -> list[Instance]:
    if not members:
        return []
    spot = _spot(aws, [each["InstanceId"] for each in members])
    prices = spot_prices(aws, sorted({each["InstanceType"] for each in members if "InstanceType" in each}))
    made = []
    for each in members:
        kind, zone, is_spot = each.get("InstanceType", ""), each["AvailabilityZone"], each["InstanceId"] in spot
        usd = prices.get((kind, zone)) if is_spot else on_demand_usd(kind)
        made.append(Instance(each["InstanceId"], kind, zone, each["LifecycleState"], is_spot, usd))
    return made


def _spot(aws: Aws, ids: list[str]) -> set[str]:
    # A filter skips ids that EC2 does not know yet, or no longer knows. Without it, such an id would be an error.
    wanted = [{"Name": "instance-id", "Values": ids}]
    found = aws.pages("ec2", "describe_instances", "Reservations", Filters=wanted)
    every = (instance for reservation in found for instance in reservation["Instances"])
    return {each["InstanceId"] for each in every if each.get("InstanceLifecycle") == "spot"}


def spot_prices(aws: Aws, kinds: list[str]) -> dict[tuple[str, str], float]:
    """Return the current spot prices in USD per hour, by type and zone; empty if AWS refuses to name them."""
    try:
        found = aws.pages(
            "ec2", "describe_spot_price_history", "SpotPriceHistory",
            InstanceTypes=kinds, ProductDescriptions=["Linux/UNIX"], StartTime=datetime.now(UTC),
        )  # fmt: skip
        return {(each["InstanceType"], each["AvailabilityZone"]): float(each["SpotPrice"]) for each in found}
    except AwsRefused:  # without prices the output is still useful
        return {}
