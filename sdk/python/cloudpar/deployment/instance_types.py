"""Checks the region's availability zones, and which instance types each of them offers."""

from cloudpar._formatting.quantity import quantity

from . import network
from .aws import Aws
from .check import Check, not_looked_up
from .failures import AwsRefused
from .plan import FAMILIES, LEAST_ZONES, Plan

Offers = dict[str, set[str]]
"""The instance families that each zone offers in the size of the plan, by the zone's name."""


def check(aws: Aws, plan: Plan) -> tuple[list[Check], list[str]]:
    """Check zones and instance types. If the region lacks families, also return the setting that leaves them out."""
    zones: list[str] | None = None
    try:
        zones = network.zones(aws, plan) if plan.vpc else _zones(aws)
        checks = [] if plan.vpc else [_enough(aws, plan, zones)]
    except AwsRefused as error:
        checks = [not_looked_up("zones", error)]
    if zones == []:  # no subnet exists, as another check says
        return checks, []
    try:
        offers = _offers(aws, plan)
    except AwsRefused as error:
        return [*checks, not_looked_up("instance types", error)], []
    if zones is not None:
        # AWS's answer also contains zones that need an opt-in. The network uses none of these zones.
        offers = {zone: offers.get(zone, set()) for zone in zones}
    types, settings = _types(aws, plan, offers)
    checks.append(types)
    if zones is not None and types.state == "ok":
        checks.append(_by_zone(plan, offers))
    return checks, settings


def _zones(aws: Aws) -> list[str]:
    """Return the names of the region's availability zones that need no opt-in, in alphabetical order."""
    wanted = {"zone-type": "availability-zone", "opt-in-status": "opt-in-not-required", "state": "available"}
    filters = [{"Name": key, "Values": [value]} for key, value in wanted.items()]
    found = aws.call("ec2", "describe_availability_zones", Filters=filters)["AvailabilityZones"]
    return sorted(each["ZoneName"] for each in found)


def _enough(aws: Aws, plan: Plan, zones: list[str]) -> Check:
    """Check the number of zones. With too few zones, CloudFormation would fail to create the network."""
    name, count = "zones", len(zones)
    text = f"{quantity(count, 'availability zone')} in {aws.region}"
    if count >= plan.zones:
        return Check(name, "ok", text)
    fix = f"take fewer: --set zones={count}" if count >= LEAST_ZONES else "use another region"
    return Check(name, "failed", f"{text}, where {plan.zones} are wanted", fix)


def _offers(aws: Aws, plan: Plan) -> Offers:
    wanted = [{"Name": "instance-type", "Values": list(plan.types)}]
    key, call = "InstanceTypeOfferings", "describe_instance_type_offerings"
    offers: Offers = {}
    for each in aws.pages("ec2", call, key, LocationType="availability-zone", Filters=wanted):
        offers.setdefault(each["Location"], set()).add(each["InstanceType"].partition(".")[0])
    return offers


def _types(aws: Aws, plan: Plan, offers: Offers) -> tuple[Check, list[str]]:
    """Check the instance types of the region.

    Some regions lack newer families, and AWS may refuse an Auto Scaling group that names one of them.
    """
    name, offered = "instance types", {family for families in offers.values() for family in families}
    left = [family for family in plan.drawn if family in offered]
    lacking = [each for each in plan.types if each.partition(".")[0] not in offered]
    if not lacking:
        return Check(name, "ok", ", ".join(plan.types)), []
    found = f"{', '.join(lacking)} not offered in {aws.region}"
    bare = [each for each in plan.architectures if not any(family in left for family in FAMILIES.get(each, ()))]
    if bare:
        fix = f"nothing is left for {' and '.join(bare)}: use another region or size, or --set architectures="
        return Check(name, "failed", found, fix), []
    if plan.families:
        return Check(name, "failed", found, f"leave them out: --set families={','.join(left)}"), []
    gone = sorted(family for family in plan.drawn if family not in left)
    return Check(name, "ok", f"{found}: left out"), [f"unavailableFamilies={','.join(gone)}"]


def _by_zone(plan: Plan, offers: Offers) -> Check:
    """Check that instances can start in each zone of the network.

    The network has the first zones of the list that CloudFormation's Fn::GetAZs returns (infra/lib/network.ts). If the
    operator deleted a zone's default subnet, this list lacks the zone. The network then uses other zones than this
    check assumes. Therefore a zone without types is only a warning, unless no zone of the network has types.
    """
    name, ordered = "types by zone", list(offers)
    used = ordered if plan.vpc else ordered[: plan.zones]
    bare = [zone for zone in used if not offers[zone]]
    if not bare:
        return Check(name, "ok", f"each of {', '.join(used)} offers some")
    found = f"{', '.join(bare)} offers none of them"
    if len(bare) == len(used):
        more = next((number for number, zone in enumerate(ordered, 1) if offers[zone]), 0)
        fix = f"use more zones: --set zones={more}" if more else "add subnets of other zones: --set subnetIds="
        return Check(name, "failed", f"{found}: no instance can start", fix)
    more_zones = "add subnets of other zones (--set subnetIds=)" if plan.vpc else "use more zones (--set zones=)"
    fix = f"name families that these zones offer (--set families=), or {more_zones}"
    return Check(name, "warning", f"{found}: instances start only in the other zones", fix)
