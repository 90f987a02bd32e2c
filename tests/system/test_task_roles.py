"""A task reads its owner's bucket, and no other, with the credentials of its account's role."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import urllib3

from aws import engines
from aws.stores import on_moto
from cloudpar_master.adapters.aws.account_store import DynamoAccountStore
from cloudpar_master.adapters.aws.clients import Clients
from cloudpar_master.adapters.aws.task_roles import StsTaskRoles
from master.conformance.test_accounts import make_account
from support.clock import SetClock
from support.leases import inline, lease_of
from worker.isolation.shared import MODES, Shared, python_for_all
from worker.tasks import value_of

REGION = "us-east-1"
OWNERS = ("ada", "bob")


def policy(**statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> str:
    """An AWS account in which each owner has a bucket and a role that may read it. This process may assume roles."""
    endpoint = engines.moto_with_permissions()

    def client(service: Any) -> Any:
        at: Any = {"region_name": REGION, "endpoint_url": endpoint}
        return boto3.client(service, aws_access_key_id="test", aws_secret_access_key="test", **at)

    for owner in OWNERS:
        bucket = f"data-of-{owner}"
        client("s3").create_bucket(Bucket=bucket)
        client("s3").put_object(Bucket=bucket, Key="x", Body=f"of {owner}".encode())
        trust = policy(Principal={"AWS": "*"}, Action="sts:AssumeRole")
        client("iam").create_role(Path="/cloudpar/", RoleName=owner, AssumeRolePolicyDocument=trust)
        read = policy(Action="s3:GetObject", Resource=f"arn:aws:s3:::{bucket}/*")
        client("iam").put_role_policy(RoleName=owner, PolicyName="data", PolicyDocument=read)
    client("iam").create_user(UserName="worker-function")
    assume = policy(Action="sts:AssumeRole", Resource="arn:aws:iam::*:role/cloudpar/*")
    client("iam").put_user_policy(UserName="worker-function", PolicyName="assume", PolicyDocument=assume)
    key = client("iam").create_access_key(UserName="worker-function")["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    assert urllib3.request("POST", f"{endpoint}/moto-api/reset-auth", body=b"0").status == 200
    return endpoint


@pytest.fixture
def shared() -> Iterator[Shared]:
    with tempfile.TemporaryDirectory(prefix="cloudpar-tests-") as name:
        Path(name).chmod(0o755)  # other users may enter it, unlike pytest's own folders
        shared = Shared("own-users", Path(name), python_for_all(Path(name) / "python"))
        yield shared
        shared.close()


def read(clues: dict[str, Any]) -> dict[str, str]:
    """The content of each bucket, or AWS's error."""
    import botocore.exceptions
    import botocore.session

    client: Any = botocore.session.get_session().create_client("s3", endpoint_url=clues["aws"])
    found = {}
    for owner in clues["owners"]:
        try:
            found[owner] = client.get_object(Bucket=f"data-of-{owner}", Key="x")["Body"].read().decode()
        except botocore.exceptions.ClientError as error:
            found[owner] = error.response["Error"]["Code"]
    return found


@pytest.mark.skipif("own-users" not in MODES, reason="only root gives executors users")
def test_a_task_reads_its_owners_bucket_and_no_other(endpoint: str, shared: Shared, tmp_path: Path) -> None:
    clock = SetClock()
    found = {}
    with on_moto(tmp_path, clock) as stores:
        assert isinstance(stores.accounts, DynamoAccountStore)
        roles = StsTaskRoles(stores.accounts, lambda: Clients(REGION, endpoint).sts, clock, REGION)
        for owner in OWNERS:
            account_id, package_id = f"account-of-{owner}", f"package-of-{owner}"
            stores.accounts.create(make_account(account_id))
            roles.assign(account_id, f"arn:aws:iam::123456789012:role/cloudpar/{owner}")
            lease = lease_of(
                read, 1, account=account_id, package_id=package_id,
                data=inline([{"aws": endpoint, "owners": OWNERS}]),
                credentials=roles.credentials(account_id, package_id),
            )  # fmt: skip
            shared.master.hand_out(lease)
            (result,) = shared.master.wait_for_results(1, package_id).values()
            found[owner] = value_of(result)
    assert found == {
        "ada": {"ada": "of ada", "bob": "AccessDenied"}, "bob": {"ada": "AccessDenied", "bob": "of bob"},
    }  # fmt: skip
