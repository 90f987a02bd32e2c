"""Why a deployment failed: the reason of the resource that failed first, in AWS's words."""

from collections.abc import Mapping
from typing import Any

from .aws import Aws
from .failures import AwsRefused

MOST = 3
"""How many resources that failed on their own are named."""


def newest_event(aws: Aws, stack: str) -> str | None:
    """The id of the last event of a stack; None: nothing happened to a stack of this name."""
    try:
        event = next(aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack), None)
    except AwsRefused:
        return None
    return None if event is None else str(event["EventId"])


def failed_resources(aws: Aws, stack: str, after: str | None) -> str | None:
    """What failed since an event, and why; None: nothing did, or AWS does not say.

    CloudFormation cancels what is under way when a resource fails. Neither these cancellations nor the line about the
    stack as a whole are causes.
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
