"""The check of requests finds what AWS refuses, and is at work in these tests."""

from collections.abc import Callable
from typing import Any

import botocore.session
import pytest

from aws import engines
from aws.documented_limits import BrokenLimit, broken
from aws.documented_limits.params import KIB, MIB
from aws.stores import clients

ROW = {"pk": {"S": "p"}, "sk": {"S": "s"}}
MESSAGE = {"Id": "1", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
ROLE = "arn:aws:iam::123456789012:role/r"
TABLE: dict[str, Any] = {"TableName": "t"}

Request = tuple[str, str, dict[str, Any]]


def row(**attributes: str) -> dict[str, Any]:
    return ROW | {name: {"S": value} for name, value in attributes.items()}


def put(**attributes: str) -> Request:
    return "dynamodb", "PutItem", TABLE | {"Item": row(**attributes)}


def transaction(*keys: str, value: str = "") -> Request:
    items = [{"Put": TABLE | {"Item": row(pk=key, value=value)}} for key in keys]
    return "dynamodb", "TransactWriteItems", {"TransactItems": items}


def update(expression: str, **values: str) -> Request:
    named = {f":{name}": {"S": value} for name, value in values.items()}
    more = {"UpdateExpression": expression, "ExpressionAttributeValues": named}
    return "dynamodb", "UpdateItem", TABLE | {"Key": ROW} | more


def batch(*changes: dict[str, Any]) -> Request:
    entries = [MESSAGE | {"Id": str(number)} | change for number, change in enumerate(changes)]
    return "sqs", "SendMessageBatch", {"QueueUrl": "q", "Entries": entries}


def receive(**params: Any) -> Request:
    return "sqs", "ReceiveMessage", {"QueueUrl": "q", **params}


def found(request: Request) -> list[str]:
    service, operation, params = request
    model = botocore.session.get_session().get_service_model(service)
    return list(broken(params, model.operation_model(operation)))


REFUSED: dict[str, Request] = {
    "large item": put(value="x" * 400 * KIB),
    "long key": put(sk="x" * 1025),
    "empty key": put(pk=""),
    "101 rows": transaction(*map(str, range(101))),
    "a row twice": transaction("a", "a"),
    "large transaction": transaction(*map(str, range(50)), value="x" * 100_000),
    "unused value": update("SET a = :a", a="1", b="2"),
    "long expression": update(f"SET {'a' * 4 * KIB} = :a", a="1"),
    "300 operators": update("SET " + ", ".join(f"a{each} = :a" for each in range(200)), a="1"),
    "26 writes": (
        "dynamodb",
        "BatchWriteItem",
        {"RequestItems": {"t": [{"PutRequest": {"Item": row(pk=str(each))}} for each in range(26)]}},
    ),
    "unknown value": ("dynamodb", "Query", TABLE | {"Select": "EVERYTHING"}),
    "11 messages": batch(*[{}] * 11),
    "an id twice": batch({"Id": "1"}, {"Id": "1"}),
    "large batch": batch(*[{"MessageBody": "x" * (MIB // 8)}] * 9),
    "a character": batch({"MessageBody": "\0"}),
    "long group": batch({"MessageGroupId": "x" * 129}),
    "no group": ("sqs", "SendMessage", {"QueueUrl": "q", "MessageBody": "x"}),
    "a day": ("sqs", "ChangeMessageVisibility", {"QueueUrl": "q", "ReceiptHandle": "r", "VisibilityTimeout": 86_400}),
    "21 s": receive(WaitTimeSeconds=21),
    "long key of an object": ("s3", "PutObject", {"Bucket": "b", "Key": "x" * 1025}),
    "1,001 objects": (
        "s3",
        "DeleteObjects",
        {"Bucket": "b", "Delete": {"Objects": [{"Key": str(each)} for each in range(1001)]}},
    ),
    "part 10,001": ("s3", "UploadPart", {"Bucket": "b", "Key": "k", "UploadId": "u", "PartNumber": 10_001}),
    "long parameter": ("ssm", "PutParameter", {"Name": "n", "Value": "x" * 5000}),
    "long secret": ("secretsmanager", "CreateSecret", {"Name": "n", "SecretString": "x" * 70_000}),
    "two hours": (
        "sts",
        "AssumeRole",
        {"RoleArn": ROLE, "RoleSessionName": "session", "DurationSeconds": 7200},
    ),
    "a session's name": (
        "sts",
        "AssumeRole",
        {"RoleArn": ROLE, "RoleSessionName": "a b"},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_aws_refuses_is_found(name: str) -> None:
    assert len(found(REFUSED[name])) == 1


@pytest.mark.parametrize(
    "request_",
    [put(value="x" * 390 * KIB), transaction("a", "b"), update("SET a = :a, b = :b", a="1", b="2"), batch(*[{}] * 10)],
)
def test_what_aws_accepts_is_not_found(request_: Request) -> None:
    assert found(request_) == []


def long_wait() -> None:
    clients(engines.moto()).sqs.receive_message(QueueUrl="q", WaitTimeSeconds=60)


def link_to_no_object() -> None:
    clients(engines.moto()).s3.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "x" * 2000})


@pytest.mark.parametrize("call", [long_wait, link_to_no_object])
def test_the_clients_of_these_tests_are_checked(call: Callable[[], None]) -> None:
    with pytest.raises(BrokenLimit):
        call()
