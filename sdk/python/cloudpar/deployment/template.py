"""Reads a CloudFormation template: its resources, their cost at rest, and which of them outlive the stack."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from .prices import Shape

Group = Literal["storage", "queue", "services", "fleet", "observability", "permissions", "other"]

_GROUPS: tuple[tuple[str, Group], ...] = (
    ("AWS::DynamoDB::", "storage"),
    ("AWS::S3::", "storage"),
    ("AWS::SecretsManager::", "storage"),
    ("AWS::SQS::", "queue"),
    ("AWS::ApiGateway", "services"),
    ("AWS::Lambda::", "services"),
    ("AWS::Events::", "services"),
    ("AWS::AutoScaling::", "fleet"),
    ("AWS::EC2::", "fleet"),
    ("AWS::CloudWatch::", "observability"),
    ("AWS::Logs::", "observability"),
    ("AWS::SNS::", "observability"),
    ("AWS::IAM::", "permissions"),
)

RETAINABLE = {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret"}


class Made(msgspec.Struct, frozen=True):
    """The number of resources of a type, and the group to which they belong."""

    group: Group
    type: str
    count: int


def made(template: Mapping[str, Any]) -> list[Made]:
    """Count the resources of a template, by group and type."""
    counts = Counter(each["Type"] for each in _resources(template).values() if each["Type"] != "AWS::CDK::Metadata")
    found = [Made(_group(kind), kind, count) for kind, count in sorted(counts.items())]
    order = [group for _, group in _GROUPS]
    return sorted(found, key=lambda each: order.index(each.group) if each.group in order else len(order))


def retained(template: Mapping[str, Any]) -> dict[str, str]:
    """Return the types of the tables, buckets and secrets that remain after their stack, by name in the template."""
    return {
        name: each["Type"]
        for name, each in sorted(_resources(template).items())
        if str(each.get("DeletionPolicy", "")).startswith("Retain") and each["Type"] in RETAINABLE
    }


def named(template: Mapping[str, Any], kind: str) -> list[str]:
    """Return the names in the template of all resources of a type."""
    return sorted(name for name, each in _resources(template).items() if each["Type"] == kind)


def shape(template: Mapping[str, Any]) -> Shape:
    """Return the parts of a template that cost money at rest."""
    kinds = Counter(each["Type"] for each in _resources(template).values())
    return Shape(
        alarm_metrics=sum(_alarm_metrics(each) for each in _of(template, "AWS::CloudWatch::Alarm")),
        dashboards=kinds["AWS::CloudWatch::Dashboard"],
        secrets=kinds["AWS::SecretsManager::Secret"],
        keys=kinds["AWS::KMS::Key"],
        nat_gateways=kinds["AWS::EC2::NatGateway"],
        timers=kinds["AWS::Events::Rule"],
        timer_mb=max((_timer_mb(each) for each in _of(template, "AWS::Lambda::Function")), default=0),
        queue_sources=sum(
            "sqs" in str(each.get("EventSourceArn", "")).lower() or "Queue" in str(each.get("EventSourceArn", ""))
            for each in _of(template, "AWS::Lambda::EventSourceMapping")
        ),
        recovery=any(
            each.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled") is True
            for each in _of(template, "AWS::DynamoDB::Table")
        ),
    )


def volume_gib(template: Mapping[str, Any]) -> int:
    """Return the size of an instance's volume, in GiB; 0 if the template does not set it."""
    for launch in _of(template, "AWS::EC2::LaunchTemplate"):
        for device in launch.get("LaunchTemplateData", {}).get("BlockDeviceMappings", ()):
            return int(device["Ebs"]["VolumeSize"])
    return 0


def has_network(template: Mapping[str, Any]) -> bool:
    """Return whether the stack has a network of its own. Instances in this network have public addresses."""
    return bool(named(template, "AWS::EC2::VPC"))


def instance_types(template: Mapping[str, Any]) -> list[str]:
    """Return the instance types of the fleet."""
    overrides = (
        override
        for group in _of(template, "AWS::AutoScaling::AutoScalingGroup")
        for override in group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {}).get("Overrides", ())
    )
    return sorted({str(each["InstanceType"]) for each in overrides})


def all_on_demand(template: Mapping[str, Any]) -> bool:
    """Return whether each instance that the fleet may have is on demand."""
    return any(
        int(group.get("MixedInstancesPolicy", {}).get("InstancesDistribution", {}).get("OnDemandBaseCapacity", 0))
        >= int(group.get("MaxSize", 1))
        for group in _of(template, "AWS::AutoScaling::AutoScalingGroup")
    )


def _resources(template: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = template.get("Resources", {})
    return found


def _of(template: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    return (each.get("Properties", {}) for each in _resources(template).values() if each["Type"] == kind)


def _group(kind: str) -> Group:
    return next((group for prefix, group in _GROUPS if kind.startswith(prefix)), "other")


def _alarm_metrics(alarm: Mapping[str, Any]) -> int:
    """Return the number of metrics that an alarm reads. AWS charges for these metrics, not for formulas."""
    if "Metrics" not in alarm:
        return 1
    return sum("MetricStat" in each for each in alarm["Metrics"])


def _timer_mb(function: Mapping[str, Any]) -> int:
    timer = function.get("Handler") == "cloudpar_handlers.timer.handle"
    return int(function.get("MemorySize", 128)) if timer else 0
