"""Empties buckets before their stack is deleted, because CloudFormation cannot delete a bucket with objects."""

from itertools import islice
from typing import Any

from . import template
from .aws import Aws
from .failures import AwsMissing, DeploymentError

BATCH = 1000


def doomed(body: dict[str, Any], physical_ids: dict[str, str]) -> list[str]:
    """Return the names in AWS of the buckets that are deleted with a stack."""
    kept = template.retained(body)
    names = [name for name in template.named(body, "AWS::S3::Bucket") if name not in kept]
    return [physical_ids[name] for name in names if physical_ids.get(name)]


def empty(aws: Aws, bucket: str) -> int:
    """Delete all objects of a bucket, and return their number; 0 if there is no such bucket.

    Raises:
        DeploymentError: Some objects could not be deleted, or AWS refuses.
    """
    keys = (each["Key"] for each in aws.pages("s3", "list_objects_v2", "Contents", Bucket=bucket))
    count = 0
    try:
        while batch := list(islice(keys, BATCH)):
            objects = {"Objects": [{"Key": key} for key in batch], "Quiet": True}
            errors = aws.call("s3", "delete_objects", Bucket=bucket, Delete=objects).get("Errors", [])
            if errors:
                first = errors[0]
                raise DeploymentError(
                    f"{len(errors)} objects of {bucket} could not be deleted ({first['Key']}: {first['Message']}): "
                    "have s3:DeleteObject allowed, then run this again"
                )
            count += len(batch)
    except AwsMissing:
        return count
    return count
