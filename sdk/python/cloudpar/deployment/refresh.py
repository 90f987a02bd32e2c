"""Lets AWS replace the instances that started before the newest update, and does not wait for the replacements.

An instance keeps the launch template with which it started. If CloudFormation replaced the instances as a part of the
update, the update would wait for drains, which may last an hour. The update would fail if AWS had no instance to give.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from .aws import Aws
from .failures import AwsRefused

WARM_UP_S = 120
"""How long an instance counts as starting. infra/lib/fleet.ts sets the same time."""

IN_PROGRESS = "InstanceRefreshInProgress"


def start(aws: Aws, group: str) -> str | None:
    """Have the group replace its outdated instances: new ones start before the old ones drain.

    Returns:
        A text for the operator about the replacement; None if there is nothing to replace.
    """
    try:
        found = aws.call("autoscaling", "describe_auto_scaling_groups", AutoScalingGroupNames=[group])
        old = sum(map(outdated, found["AutoScalingGroups"]))
        if not old:
            return None
        aws.call(
            "autoscaling", "start_instance_refresh", AutoScalingGroupName=group,
            # SkipMatching leaves out the instances that have started since the update.
            Preferences={
                "MinHealthyPercentage": 100, "MaxHealthyPercentage": 200, "InstanceWarmup": WARM_UP_S,
                "SkipMatching": True,
            },
        )  # fmt: skip
    except AwsRefused as error:
        if error.code.removesuffix("Fault") == IN_PROGRESS:
            return "AWS is still replacing instances after the deployment before; when it has ended, deploy again."
        return f"The instances that run keep their earlier image, because AWS refused to replace them: {error}"
    return (
        f"Instances with an earlier image or configuration: {old}. AWS replaces them now, new ones first; the old ones "
        "finish their tasks."
    )


def outdated(group: Mapping[str, Any]) -> int:
    """Return how many instances of a group started with another launch template or version than new ones would get.

    `group` has the form of an entry of `describe_auto_scaling_groups`.
    """
    current = set(map(_version, _templates(group)))
    templates = (each.get("LaunchTemplate") for each in group["Instances"])
    return sum(each is None or _version(each) not in current for each in templates) if current else 0


def _templates(group: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "LaunchTemplate" in group:
        yield group["LaunchTemplate"]
    mixed = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate")
    if mixed:
        yield mixed["LaunchTemplateSpecification"]
        for each in mixed.get("Overrides", ()):
            if "LaunchTemplateSpecification" in each:
                yield each["LaunchTemplateSpecification"]


def _version(template: Mapping[str, Any]) -> tuple[str, str]:
    return template["LaunchTemplateId"], template["Version"]
