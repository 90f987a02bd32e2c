"""Finds the resources of a deployment that remain when its stack is deleted, and their costs per month."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from . import prices, template, token_secret
from .aws import Aws
from .failures import AwsRefused

GB = 1e9
SIZE_DAYS = 3
"""For how many past days bucket sizes are requested. The newest size may be this old, because S3 reports a size once a
day, with a delay.
"""

REPOSITORY = "cdk-hnb659fds-container-assets-{account}-{region}"


class Leftover(msgspec.Struct, frozen=True):
    """One resource that remains.

    Attributes:
        type: The type, as CloudFormation names it.
        name: The name, as AWS names it.
        size_bytes: The size, or None if AWS does not report it.
        usd: The cost per month; None if it depends on the size and the size is unknown.
        delete: The command that deletes the resource. A deleted secret can still be restored for 7 days.
    """

    type: str
    name: str
    size_bytes: int | None
    usd: float | None
    delete: str


def retained(aws: Aws, body: dict[str, Any], physical_ids: dict[str, str]) -> list[Leftover]:
    """Return the tables, buckets and secrets of a stack that are not deleted with it."""
    kinds = {
        "AWS::DynamoDB::Table": _table,
        "AWS::S3::Bucket": _bucket,
        "AWS::SecretsManager::Secret": _secret,
    }
    found = template.retained(body)
    return [kinds[kind](aws, physical_ids[name]) for name, kind in found.items() if physical_ids.get(name)]


def tokens(aws: Aws, stack: str) -> list[Leftover]:
    """Return the secrets with users' tokens, made by `account create --secret`; empty if AWS refuses to list them."""
    try:
        return [_secret(aws, name) for name in token_secret.of_stack(aws, stack)]
    except AwsRefused:
        return []


def key(aws: Aws, environment: str) -> Leftover | None:
    """Return the parameter with the key that encrypts the accounts' keys.

    Returns None if the parameter does not exist, or if AWS does not show it.

    A Lambda function creates this parameter, so it is not a resource of the stack. The tables that remain after the
    stack contain accounts' keys, which only this key decrypts.
    """
    name = f"/cloudpar/{environment}/accounts-key"
    try:
        aws.call("ssm", "get_parameter", Name=name)
    except AwsRefused:
        return None
    delete = f"aws ssm delete-parameter --name {name} --region {aws.region}"
    return Leftover("AWS::SSM::Parameter", name, None, 0.0, delete)


def images(aws: Aws, account: str) -> Leftover | None:
    """Return all images in the CDK's registry, which other apps of the account may share; None if there are none.

    The result is also None if AWS does not show the images.
    """
    name = REPOSITORY.format(account=account, region=aws.region)
    try:
        found = list(aws.pages("ecr", "describe_images", "imageDetails", repositoryName=name))
    except AwsRefused:
        return None
    size = sum(int(each.get("imageSizeInBytes", 0)) for each in found)
    if not size:
        return None
    delete = f"cdk gc aws://{account}/{aws.region} --unstable=gc --type ecr"
    return Leftover("AWS::ECR::Repository", name, size, size / GB * prices.IMAGE_GB_USD, delete)


def _table(aws: Aws, name: str) -> Leftover:
    size: int | None
    try:
        size = int(aws.call("dynamodb", "describe_table", TableName=name)["Table"].get("TableSizeBytes", 0))
    except AwsRefused:
        size = None
    usd = None if size is None else size / GB * (prices.TABLE_GB_USD + prices.RECOVERY_GB_USD)
    delete = (
        f"aws dynamodb update-table --no-deletion-protection-enabled --table-name {name} && "
        f"aws dynamodb delete-table --table-name {name}"
    )
    return Leftover("AWS::DynamoDB::Table", name, size, usd, delete)


def _bucket(aws: Aws, name: str) -> Leftover:
    now = datetime.now(UTC)
    try:
        points = aws.call(
            "cloudwatch", "get_metric_statistics", Namespace="AWS/S3", MetricName="BucketSizeBytes",
            Dimensions=[{"Name": "BucketName", "Value": name}, {"Name": "StorageType", "Value": "StandardStorage"}],
            StartTime=now - timedelta(days=SIZE_DAYS), EndTime=now, Period=86_400, Statistics=["Average"],
        )["Datapoints"]  # fmt: skip
    except AwsRefused:
        points = []
    newest = max(points, key=lambda point: point["Timestamp"], default=None)
    size = None if newest is None else int(newest["Average"])
    usd = None if size is None else size / GB * prices.BUCKET_GB_USD
    return Leftover("AWS::S3::Bucket", name, size, usd, f"aws s3 rb --force s3://{name}")


def _secret(aws: Aws, name: str) -> Leftover:
    delete = token_secret.deletion(name, aws.region)
    return Leftover("AWS::SecretsManager::Secret", name, None, prices.SECRET_USD, delete)
