"""CloudFormation updates the stack of the last release to today's, and back, without replacing what keeps data.

CloudFormation replaces a resource with another logical id, or one of whose properties differs that AWS cannot change.
"""

from collections.abc import Callable
from typing import Any

import pytest

from aws.template import synthesized
from system.mixture import unpack

from .releases import LAST

FIXED: dict[str, tuple[str, ...]] = {
    "AWS::DynamoDB::Table": ("TableName", "KeySchema", "LocalSecondaryIndexes"),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::SecretsManager::Secret": ("Name", "GenerateSecretString"),
    "AWS::SQS::Queue": ("QueueName", "FifoQueue"),
    "AWS::AutoScaling::AutoScalingGroup": ("AutoScalingGroupName",),
    "AWS::ApiGatewayV2::Api": ("Name", "ProtocolType"),
    "AWS::EC2::VPC": ("CidrBlock",),
    "AWS::EC2::Subnet": ("CidrBlock", "AvailabilityZone"),
}
"""The resources whose replacement would lose data, tasks or the address of the pool; with the properties that AWS
cannot change. A secret gets another value if its generator differs."""

USED = ("Endpoint", "PackageTable", "AccountTable", "QueueUrl", "Bucket", "AccountFunction", "FleetGroup", "Region")
"""The outputs that the commands of either release read."""

Template = dict[str, Any]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Template, Template]:
    """Return the templates of the last release and of today."""
    last = unpack(LAST, tmp_path_factory.mktemp("releases") / "last").root
    return synthesized(last), synthesized()


def replaced(before: Template, after: Template) -> list[str]:
    """Return the resources of FIXED that an update from one template to another one would replace or remove."""
    resources = after["Resources"]
    return [
        name
        for name, each in before["Resources"].items()
        if each["Type"] in FIXED
        and (
            resources.get(name, {}).get("Type") != each["Type"]
            or any(_property(each, fixed) != _property(resources[name], fixed) for fixed in FIXED[each["Type"]])
        )
    ]


def _property(resource: Template, name: str) -> Any:
    return resource.get("Properties", {}).get(name)


def indexes(template: Template) -> dict[str, dict[str, Any]]:
    """Return the indexes of each table, by their names."""
    return {
        name: {index["IndexName"]: index for index in each["Properties"].get("GlobalSecondaryIndexes", [])}
        for name, each in template["Resources"].items()
        if each["Type"] == "AWS::DynamoDB::Table"
    }


def test_g13_an_update_and_the_way_back_replace_nothing_that_keeps_data(
    both: tuple[Template, Template], reached: Callable[..., None]
) -> None:
    last, today = both
    assert replaced(last, today) == replaced(today, last) == []
    kept = sum(each["Type"] in FIXED for each in last["Resources"].values())
    assert kept >= len(FIXED)
    reached(f"stack of {LAST} and today's: {kept} resources that keep data stay, in both directions")


def test_an_update_changes_one_index_of_a_table_at_most(both: tuple[Template, Template]) -> None:
    """DynamoDB refuses an update that creates or deletes more than one."""
    last, today = map(indexes, both)
    for table, before in last.items():
        changed = [name for name in before | today[table] if before.get(name) != today[table].get(name)]
        assert len(changed) <= 1


def test_the_commands_of_either_release_find_what_they_read(both: tuple[Template, Template]) -> None:
    last, today = both
    assert set(USED) <= last["Outputs"].keys()
    assert last["Outputs"].keys() <= today["Outputs"].keys()


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("AWS::DynamoDB::Table", "TableName", "x"), ("AWS::SQS::Queue", "FifoQueue", False)],
)
def test_a_property_that_aws_cannot_change_is_found(kind: str, name: str, value: object) -> None:
    today = synthesized()
    first = next(key for key, each in today["Resources"].items() if each["Type"] == kind)
    other = {**today["Resources"][first], "Properties": {**today["Resources"][first]["Properties"], name: value}}
    changed = {**today, "Resources": {**today["Resources"], first: other}}
    assert replaced(today, changed) == [first]
    without = {**today, "Resources": {key: each for key, each in today["Resources"].items() if key != first}}
    assert replaced(today, without) == [first]
