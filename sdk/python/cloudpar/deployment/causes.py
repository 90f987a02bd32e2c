"""Why a deployment failed: the reason, in AWS's words, of the resource that failed first."""

from collections.abc import Mapping
from typing import Any

from .aws import Aws
from .failures import AwsRefused

MOST = 3
"""How many failed resources an error names at most."""


def newest_event(aws: Aws, stack: str) -> str | None:
    """The id of a stack's last event; None if no stack of this name has events."""
    try:
        event = next(aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack), None)
    except AwsRefused:
        return None
    return None if event is None else str(event["EventId"])


def failed_resources(aws: Aws, stack: str, after: str | None) -> str | None:
    """Which resources have failed since an event, and why; None if none has, or AWS does not say.

    When a resource fails, CloudFormation cancels the others. These cancellations, and the line about the whole stack,
    are no causes.
    """
    found: list[str] = []
    try:
        for event in aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack):
            if event["EventId"] == after:
                break
            if _is_cause(event):
                kind, reason = event.get("ResourceType"), event["ResourceStatusReason"]
                found.append(f"{event['LogicalResourceId']} ({kind}): {reason}")
    except AwsRefused:
        return None
    oldest_first = list(dict.fromkeys(reversed(found)))
    return "; ".join(oldest_first[:MOST]) or None


def _is_cause(event: Mapping[str, Any]) -> bool:
    reason = event.get("ResourceStatusReason", "")
    return (
        event["ResourceStatus"].endswith("_FAILED")
        and event.get("ResourceType") != "AWS::CloudFormation::Stack"
        and bool(reason)
        and "cancelled" not in reason.lower()
    )
