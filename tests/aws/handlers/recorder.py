"""Records which IAM rights the AWS calls of a function need, including those of the links that it signs."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from aws.template import Right

OBJECTS = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
}
"""Calls on one object, with their IAM actions."""

ROWS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
"""The parts of a transaction, with their IAM actions."""


class Recorder:
    """Records the calls of clients; the library calls it before it builds a request or a link.

    Args:
        resources: The stack's name of each resource, by the name that calls use.
    """

    def __init__(self, resources: Mapping[str, str]) -> None:
        self._resources = resources
        self._calls: list[tuple[str, str, dict[str, Any]]] = []

    def note(self, **event: Any) -> None:
        """Handle the event provide-client-params."""
        operation = event["model"]
        self._calls.append((operation.service_model.service_name, operation.name, deepcopy(event["params"])))

    def operations(self) -> set[str]:
        """Return all operations that were called."""
        return {name for _, name, _ in self._calls}

    def needs(self) -> set[Right]:
        """Return the rights that the calls need."""
        return {Right(*right) for call in self._calls for right in self._rights(*call)}

    def _rights(self, service: str, name: str, params: dict[str, Any]) -> Iterator[tuple[str, ...]]:
        match service:
            case "dynamodb":
                yield from self._tables(name, params)
            case "s3":
                yield from self._objects(name, params)
            case "sqs":
                yield f"sqs:{name.removesuffix('Batch')}", self._resources[params["QueueUrl"]]
            case "secretsmanager":
                yield f"secretsmanager:{name}", self._resources[params["SecretId"]]
            case "ssm":
                yield f"ssm:{name}", self._resources[params["Name"]]
            case "sts":
                yield f"sts:{name}", params["RoleArn"].replace("arn:aws:", "arn:AWS::Partition:")
            case "autoscaling" if name.startswith("Describe"):
                yield f"autoscaling:{name}", "any group"
            case "autoscaling":
                yield f"autoscaling:{name}", self._resources[params["AutoScalingGroupName"]]
            case _:
                raise AssertionError(service)

    def _tables(self, name: str, params: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if name == "TransactWriteItems":
            for kind, part in (pair for item in params["TransactItems"] for pair in item.items()):
                yield f"dynamodb:{ROWS[kind]}", self._resources[part["TableName"]]
        elif name.startswith("Batch"):
            for table in params["RequestItems"]:
                yield f"dynamodb:{name}", self._resources[table]
        else:
            index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
            yield f"dynamodb:{name}", self._resources[params["TableName"]] + index

    def _objects(self, name: str, params: dict[str, Any]) -> Iterator[tuple[str, ...]]:
        bucket = self._resources[params["Bucket"]]
        match name:
            case "CopyObject":
                yield "s3:GetObject", f"{bucket}/{params['CopySource']['Key']}"
                yield "s3:PutObject", f"{bucket}/{params['Key']}"
            case "DeleteObjects":
                for each in params["Delete"]["Objects"]:
                    yield "s3:DeleteObject", f"{bucket}/{each['Key']}"
            case "ListObjectsV2":
                yield "s3:ListBucket", bucket, params["Prefix"]
            case "ListMultipartUploads":
                yield "s3:ListBucketMultipartUploads", bucket
            case _:
                yield OBJECTS[name], f"{bucket}/{params['Key']}"
