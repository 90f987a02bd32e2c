"""Reads change sets. A change set lists the changes that CloudFormation will make to a stack's resources."""

from collections.abc import Mapping
from typing import Any

import msgspec

from .aws import Aws
from .failures import AwsMissing, DeploymentError

HOLDS_DATA = {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SecretsManager::Secret"}
"""The types of resources whose content cannot be restored. Queues are among them: if their messages were lost, packages
would wait for chunks that never run.
"""


class Doomed(msgspec.Struct, frozen=True):
    """A resource that a deployment removes, replaces or may replace.

    Attributes:
        name: The name in the template.
        type: The type, as CloudFormation names it.
        fate: The change to the resource, in words.
    """

    name: str
    type: str
    fate: str


def doomed(aws: Aws, stack: str, name: str) -> list[Doomed] | None:
    """Return the resources that a change set removes, replaces or may replace.

    Returns None if there is no change set of this name: the CDK creates none if nothing changes.
    """
    try:
        pages = list(aws.pages("cloudformation", "describe_change_set", "Changes", StackName=stack, ChangeSetName=name))
    except AwsMissing:
        return None
    changes = [each["ResourceChange"] for each in pages if "ResourceChange" in each]
    return [Doomed(each["LogicalResourceId"], each["ResourceType"], fate) for each in changes if (fate := _fate(each))]


def _fate(change: Mapping[str, Any]) -> str | None:
    if change["Action"] == "Remove":
        stays = change.get("PolicyAction") == "Retain"
        return "removed from the stack; it stays in the account" if stays else "deleted"
    return {"True": "replaced by a new one", "Conditional": "may be replaced by a new one"}.get(
        change.get("Replacement", "False")
    )


def discard(aws: Aws, stack: str, name: str) -> None:
    """Delete a change set without executing it."""
    aws.call("cloudformation", "delete_change_set", StackName=stack, ChangeSetName=name)


def check_data(found: list[Doomed], stack: str) -> None:
    """Refuse a deployment that would take data from a stack.

    Raises:
        DeploymentError: A table, a bucket, a queue or a secret would be removed from the stack, or could be replaced.
    """
    lost = [f"{each.name} ({each.type}: {each.fate})" for each in found if each.type in HOLDS_DATA]
    if lost:
        raise DeploymentError(
            f"nothing was changed, since this deployment would take data from {stack}: {', '.join(lost)}. Deploy the "
            "release that made the stack, or move the data and remove the resource from the stack yourself"
        )
