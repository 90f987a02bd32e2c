"""`cloudpar account ... --stack`: administration with IAM's permissions."""

import json
import re
from hashlib import sha256
from typing import Any

import boto3
import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from cli.deployment.conftest import outputs
from cli.deployment.stand_in import NAME, StandIn, package
from cli.here import Here
from cloudpar.deployment import leftovers
from cloudpar.deployment.aws import Aws
from cloudpar_protocol.tokens import has_checksum


@pytest.fixture
def deployed(aws: StandIn) -> StandIn:
    aws.deploy(outputs())
    return aws


def test_create_prints_the_token_of_the_new_account(deployed: StandIn, here: Here) -> None:
    """The stack's output CreateFirstAccount names this command."""
    out = here("account", "create", "ada", "--hours", "10", "--stack", NAME).out
    assert "export CLOUDPAR_ENDPOINT=https://pool.example" in out
    token = out.partition("CLOUDPAR_TOKEN=")[2].strip()
    assert has_checksum(token)
    assert deployed.token_hashes == [sha256(token.encode()).hexdigest()]
    assert deployed.accounts[0].granted_us == 36_000_000_000


def test_list_prints_all_accounts(deployed: StandIn, here: Here) -> None:
    here("account", "create", "ada", "--quota", "1h", "--stack", NAME)
    assert [each["name"] for each in here.json("account", "list", "--stack", NAME)["accounts"]] == ["ada"]


def secret(name: str) -> dict[str, Any]:
    found: dict[str, Any] = boto3.client("secretsmanager", "us-east-1").get_secret_value(SecretId=name)
    return found


CREATE = ["account", "create", "ada", "--hours", "10", "--stack", NAME, "--secret", "ada-token"]


def test_a_token_can_be_stored_in_a_secret(deployed: StandIn, here: Here) -> None:
    """The JavaScript SDK's tokenSecret and CLOUDPAR_TOKEN_SECRET expect this text in the secret; it is not printed."""
    out = here(*CREATE).out
    token = secret("ada-token")["SecretString"]
    assert deployed.token_hashes == [sha256(token.encode()).hexdigest()]
    assert token not in out
    assert "0.40 USD a month" in out
    assert f"export AWS_REGION=us-east-1 CLOUDPAR_STACK={NAME} CLOUDPAR_TOKEN_SECRET=ada-token" in out
    (left,) = leftovers.tokens(Aws(), NAME)
    assert (left.name, left.usd) == ("ada-token", 0.40)
    assert leftovers.tokens(Aws(), "Cloudpar") == []


def test_a_token_in_a_secret_is_not_in_the_json_output(deployed: StandIn, here: Here) -> None:
    found = here.json(*CREATE)
    assert (found["account"]["name"], found["secret"]) == ("ada", secret("ada-token")["ARN"])
    assert "token" not in found


def test_a_secret_that_is_there_is_not_overwritten(deployed: StandIn, here: Here) -> None:
    boto3.client("secretsmanager", "us-east-1").create_secret(Name="ada-token", SecretString="precious")
    assert "there is a secret ada-token in us-east-1 already: give another name" in here(*CREATE, code=8).err
    assert deployed.accounts == []
    assert secret("ada-token")["SecretString"] == "precious"


@pytest.mark.parametrize("code", ["AccessDeniedException", "InvalidRequestException"])
def test_a_secret_that_may_not_be_made(deployed: StandIn, here: Here, code: str) -> None:
    deployed.refusals["CreateSecret"] = (code, "not like this")
    assert "not like this" in here(*CREATE, code=8).err
    assert deployed.accounts == []


def test_without_an_account_there_is_no_secret(deployed: StandIn, here: Here) -> None:
    deployed.account_function = lambda _: RuntimeError("no table")
    assert "no table" in here(*CREATE, code=8).err
    assert boto3.client("secretsmanager", "us-east-1").list_secrets()["SecretList"] == []


def test_secrets_that_may_not_be_listed(deployed: StandIn) -> None:
    deployed.refusals["ListSecrets"] = ("AccessDeniedException", "no")
    assert leftovers.tokens(Aws(), NAME) == []


def test_packages_of_all_accounts_are_listed(deployed: StandIn, here: Here) -> None:
    deployed.packages = [package("p1", "ada"), package("q1", "bob", "completed")]
    here("packages", "--help")
    out = here("packages", "list", "--stack", NAME).out
    assert all(word in out for word in ("account", "ada", "bob", "p1", "q1", "square"))
    assert "account bob" in here("packages", "show", "q", "--stack", NAME).out
    assert len(here.json("top", "--once", "--stack", NAME)["packages"]) == 2


def test_a_package_is_cancelled(deployed: StandIn, here: Here) -> None:
    deployed.packages = [package("p1", "ada")]
    out = here("packages", "cancel", "p1", "--stack", NAME).out
    assert out == "p1: cancelled, 3 tasks without a result; 1s charged\n"
    found = here.json("packages", "cancel", "p1", "--stack", NAME)
    assert (found["state"], found["had_ended"], found["cancelled"]) == ("cancelled", True, 0)


def test_a_package_that_has_ended_is_not_cancelled(deployed: StandIn, here: Here) -> None:
    deployed.packages = [package("p1", "ada", "completed")]
    out = here("packages", "cancel", "p1", "--stack", NAME).out
    assert re.fullmatch(r"p1: had ended 1m \d+s ago \(completed\), so there was nothing to cancel; 2s charged\n", out)


def test_an_unknown_package_is_an_error(deployed: StandIn, here: Here) -> None:
    assert here("packages", "list", "--stack", NAME).out == "No packages yet.\n"
    err = here("packages", "cancel", "p", "--stack", NAME, code=5).err
    assert "no package 'p' among the newest 1000 that you may see" in err


@pytest.mark.parametrize("arguments", [["grant", "a9", "10h"], ["revoke", "a9"]])
def test_an_unknown_account_is_an_error(deployed: StandIn, here: Here, arguments: list[str]) -> None:
    assert "error: no account 'a9', by name or id" in here("account", *arguments, "--stack", NAME, code=5).err


def test_a_missing_permission_is_an_error(deployed: StandIn, here: Here) -> None:
    deployed.refusals["Invoke"] = ("AccessDeniedException", "no")
    assert "may not call lambda:Invoke" in here("account", "list", "--stack", NAME, code=8).err


def test_an_unknown_stack_is_an_error(aws: StandIn, here: Here) -> None:
    err = here("account", "list", "--stack", "Cloudpar-absent", "--region", "eu-west-1", code=5).err
    assert "no stack Cloudpar-absent in eu-west-1" in err


def test_a_stack_without_the_account_function_is_an_error(aws: StandIn, here: Here) -> None:
    aws.deploy({}, "ROLLBACK_COMPLETE")
    assert "has no output AccountFunction" in here("account", "list", "--stack", NAME, code=5).err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["account", "list", "--stack", NAME, "--data", "."], "--stack and --data"),
        (["packages", "list", "--stack", NAME, "--data", "."], "--stack and --data"),
        (["account", "create", "x", "--hours", "1", "--quota", "1h", "--stack", NAME], "only one of them"),
        (["account", "create", "x", "--hours", "1", "--secret", "s"], "give the --stack"),
        (["account", "create", "x", "--hours", "-1", "--stack", NAME], "--hours"),
    ],
)
def test_contradictory_options_are_refused(aws: StandIn, here: Here, arguments: list[str], words: str) -> None:
    assert words in here(*arguments, code=2).err


ROLE = "arn:aws:iam::123456789012:role/cloudpar/ada"


@pytest.fixture
def roles(deployed: StandIn) -> list[dict[str, Any]]:
    """Have the account function set roles, and return the requests that it gets."""
    others, requests = deployed.account_function, []

    def account_function(event: dict[str, Any]) -> Any:
        if event["route"] != "set_role":
            return others(event)
        requests.append(event["body"])
        (account,) = deployed.accounts
        deployed.accounts[0] = replace(account, task_role=event["body"].get("task_role"))
        return {"status": 200, "body": {"v": 1, "account": to_builtins(deployed.accounts[0])}}

    deployed.account_function = account_function
    deployed.deploy(outputs() | {"WorkerRole": "arn:aws:iam::210987654321:role/Cloudpar-dev-WorkerRole"})
    return requests


def test_a_role_for_tasks_is_set_and_its_trust_policy_is_shown(
    deployed: StandIn, here: Here, roles: list[dict[str, Any]]
) -> None:
    here("account", "create", "ada", "--quota", "1h", "--stack", NAME)
    out = here("account", "set-role", "ada", ROLE, "--stack", NAME).out
    assert roles == [{"v": 1, "account_id": "a1", "task_role": ROLE}]
    assert f"The trust policy that {ROLE} needs:" in out
    policy = json.loads(out[out.index("\n{") :])
    assert policy["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::210987654321:role/Cloudpar-dev-WorkerRole"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": "a1"}},
        }
    ]
    assert here.json("account", "set-role", "ada", ROLE, "--stack", NAME)["trust_policy"] == policy
    assert f"tasks of ada: {ROLE}\n" in here("account", "list", "--stack", NAME).out


def test_a_role_for_tasks_is_taken_away(deployed: StandIn, here: Here, roles: list[dict[str, Any]]) -> None:
    here("account", "create", "ada", "--quota", "1h", "--stack", NAME)
    found = here.json("account", "set-role", "ada", "none", "--stack", NAME)
    assert roles == [{"v": 1, "account_id": "a1", "task_role": None}]
    assert (found["account"]["task_role"], found["trust_policy"]) == (None, None)
    assert "tasks of" not in here("account", "list", "--stack", NAME).out


@pytest.mark.parametrize("arn", ["ada", "arn:aws:iam::123456789012:role/ada", f"{ROLE} x"])
def test_a_role_that_the_deployment_may_not_assume_is_refused(deployed: StandIn, here: Here, arn: str) -> None:
    error = here.error("account", "set-role", "ada", arn, "--stack", NAME, code=2)
    assert "no ARN of a role whose path starts with /cloudpar/" in error


def test_the_trust_policy_needs_a_stack_of_this_release(deployed: StandIn, here: Here, roles: object) -> None:
    here("account", "create", "ada", "--quota", "1h", "--stack", NAME)
    deployed.deploy(outputs())
    assert "has no output WorkerRole" in here.error("account", "set-role", "ada", ROLE, "--stack", NAME, code=5)
