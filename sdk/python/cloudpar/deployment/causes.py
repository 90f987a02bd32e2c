"""Finds out why a deployment failed: names the resources that failed by themselves, with AWS's reasons."""

from collections.abc import Mapping
from typing import Any

from .aws import Aws
from .failures import AwsRefused
from .stack import events_since

MOST = 3
"""How many failed resources an error names at most."""


def failed_resources(aws: Aws, stack: str, after: str | None) -> str | None:
    """Name the resources that have failed since the stack's event with the id `after`, with the reasons.

    Returns None if no resource has failed, or if AWS refuses to list the events. If `after` is None, the function looks
    at all events.

    When a resource fails, CloudFormation cancels the others. This function leaves out the events about these
    cancellations and the event about the whole stack, since they are consequences of the failure.
    """
    try:
        causes = filter(_is_cause, events_since(aws, stack, after))
    except AwsRefused:
        return None
    found = [
        f"{event['LogicalResourceId']} ({event.get('ResourceType')}): {event['ResourceStatusReason']}"
        for event in causes
    ]
    return "; ".join(list(dict.fromkeys(found))[:MOST]) or None


def _is_cause(event: Mapping[str, Any]) -> bool:
    reason = event.get("ResourceStatusReason", "")
    return (
        event["ResourceStatus"].endswith("_FAILED")
        and event.get("ResourceType") != "AWS::CloudFormation::Stack"
        and bool(reason)
        and "cancelled" not in reason.lower()
    )
