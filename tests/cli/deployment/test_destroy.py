"""`cloudpar destroy` prints what remains before it deletes the stack."""

import io

import boto3
import pytest

from cli.deployment.conftest import outputs
from cli.deployment.stand_in import StandIn
from cli.here import Here
from cloudpar.deployment import buckets, profile
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.profile import Profile


@pytest.fixture
def deployed(aws: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Make a stack that retains a table, a bucket and a secret."""
    monkeypatch.setattr("cloudpar.cli.destroy.LOOK_S", 0.0)
    boto3.client("dynamodb", "us-east-1").create_table(
        TableName="packages", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )  # fmt: skip
    aws.retained = {"Packages": "packages", "Blobs": "blobs", "Token": "arn:token", "Tasks": "tasks"}
    aws.deploy(outputs())
    return aws


def test_destroy_prints_what_remains_and_deletes_the_stack(deployed: StandIn, here: Here) -> None:
    profile.write(Profile("https://pool.example", "token"))
    deployed.deletion = ["DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]
    out, err = here("destroy", "--yes")
    for words in ("packages", "blobs", "arn:token", "aws s3 rb --force s3://blobs", "USD a month", "DELETE_COMPLETE"):
        assert words in err
    assert "what is left costs 0.40 USD a month" in out
    assert profile.read() is None
    assert deployed.calls.count("DeleteStack") == 1


def test_destroy_with_json_lists_what_is_left_and_its_price(deployed: StandIn, here: Here) -> None:
    found = here.json("destroy", "--yes")
    assert [(each["name"], each["size_bytes"]) for each in found["left"]] == [
        ("blobs", None), ("packages", 0), ("arn:token", None)
    ]  # fmt: skip
    assert found["left_usd_month"] == 0.4
    assert found["profile"] is None


def test_another_pools_profile_stays(deployed: StandIn, here: Here) -> None:
    profile.write(Profile("https://other.example", "token"))
    here("destroy", "--yes")
    assert profile.read() == Profile("https://other.example", "token")


def test_nothing_happens_without_a_yes(deployed: StandIn, monkeypatch: pytest.MonkeyPatch, here: Here) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert "What outlives the stack" in here("destroy", code=130).err
    assert "DeleteStack" not in deployed.calls


def test_without_retained_resources_no_resource_remains(deployed: StandIn, here: Here) -> None:
    deployed.template = {"Resources": {"Tasks": {"Type": "AWS::SQS::Queue"}}}
    assert "Nothing stays" in here("destroy", "--yes").err


def test_the_key_of_accounts_keys_stays(deployed: StandIn, here: Here) -> None:
    """The functions made it, so it is in no template."""
    name = "/cloudpar/dev/accounts-key"
    boto3.client("ssm", "us-east-1").put_parameter(Name=name, Value="x", Type="SecureString")
    left = here.json("destroy", "--yes")["left"][-1]
    assert (left["name"], left["usd"]) == (name, 0.0)
    assert left["delete"] == f"aws ssm delete-parameter --name {name} --region us-east-1"


def test_secrets_with_users_tokens_stay(deployed: StandIn, here: Here) -> None:
    secrets = boto3.client("secretsmanager", "us-east-1")
    for name, stack in {"ada": "Cloudpar-dev", "bob": "Cloudpar-dev-2"}.items():
        secrets.create_secret(Name=name, SecretString="x", Tags=[{"Key": "cloudpar:stack", "Value": stack}])
    found = here.json("destroy", "--yes")
    assert [each["name"] for each in found["left"]][-2:] == ["arn:token", "ada"]
    assert found["left_usd_month"] == 0.8


def test_images_of_the_worker_stay(deployed: StandIn, here: Here) -> None:
    deployed.images = [400_000_000, 350_000_000]
    left = here.json("destroy", "--yes")["left"][-1]
    assert (left["type"], left["size_bytes"]) == ("AWS::ECR::Repository", 750_000_000)
    assert left["usd"] == pytest.approx(0.075)


@pytest.mark.parametrize("template", [{}, {"TemplateBody": ""}])
def test_a_stack_that_has_only_been_reviewed_is_deleted(
    deployed: StandIn, template: dict[str, str], here: Here
) -> None:
    deployed.deploy({}, "REVIEW_IN_PROGRESS")
    deployed.retained = {}
    deployed.answer("GetTemplate", template)
    here("destroy", "--yes")
    assert deployed.calls.count("DeleteStack") == 1


def test_a_protected_stack_is_an_error(deployed: StandIn, here: Here) -> None:
    deployed.protected = True
    assert "--no-enable-termination-protection --stack-name Cloudpar-dev" in here("destroy", "--yes", code=8).err
    assert "DeleteStack" not in deployed.calls


def test_a_stack_that_cannot_be_deleted_is_an_error(deployed: StandIn, here: Here) -> None:
    deployed.deletion = ["DELETE_FAILED", "DELETE_FAILED"]
    assert "could not be deleted" in here("destroy", "--yes", code=8).err.splitlines()[-1]


@pytest.fixture
def bucket(deployed: StandIn) -> str:
    """Make a bucket of the stack that is not retained, with objects in it."""
    deployed.template = {"Resources": {"Blobs": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Delete"}}}
    fill("blobs", 3)
    return "blobs"


def fill(name: str, objects: int) -> None:
    s3 = boto3.client("s3", "us-east-1")
    s3.create_bucket(Bucket=name)
    for number in range(objects):
        s3.put_object(Bucket=name, Key=f"data/{number}", Body=b"x")


def objects(name: str) -> int:
    return int(boto3.client("s3", "us-east-1").list_objects_v2(Bucket=name)["KeyCount"])


def test_a_bucket_that_goes_is_emptied_first(
    deployed: StandIn, bucket: str, monkeypatch: pytest.MonkeyPatch, here: Here
) -> None:
    monkeypatch.setattr("cloudpar.deployment.buckets.BATCH", 2)
    assert "3 objects of blobs deleted" in here("destroy", "--yes").err
    assert objects(bucket) == 0


def test_a_bucket_that_was_written_meanwhile_is_emptied_again(deployed: StandIn, bucket: str, here: Here) -> None:
    deployed.deletion = ["DELETE_FAILED", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]
    here("destroy", "--yes")
    assert deployed.calls.count("DeleteStack") == 2


def test_a_bucket_that_stays_keeps_its_objects(deployed: StandIn, here: Here) -> None:
    fill("blobs", 1)
    here("destroy", "--yes")
    assert objects("blobs") == 1


def test_objects_that_may_not_be_deleted(deployed: StandIn, bucket: str, here: Here) -> None:
    deployed.undeletable = "data/1"
    assert "data/1: Access Denied" in here("destroy", "--yes", code=8).err.splitlines()[-1]
    assert "DeleteStack" not in deployed.calls


def test_many_objects_are_listed_in_pages(deployed: StandIn, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"Contents": [{"Key": "a"}], "IsTruncated": True, "NextContinuationToken": "next"}
    deployed.pages = [first, {"KeyCount": 0}]
    assert buckets.empty(Aws(), bucket) == 1
    assert deployed.pages == []


def test_emptying_a_bucket_that_is_gone_deletes_no_object(aws: StandIn) -> None:
    assert buckets.empty(Aws(), "gone") == 0


def test_an_unknown_stack_is_an_error(aws: StandIn, here: Here) -> None:
    here("destroy", "--yes", code=5)
