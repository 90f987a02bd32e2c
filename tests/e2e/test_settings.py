"""`cloudpar deploy` on an existing stack: settings and tables stay until an option names them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.command import CLOUDPAR

from .deployment import COMMAND_S, ROOT, STACK, Deployment

EMAIL = "ops@example.com"


class Operator:
    """Runs `cloudpar deploy` as an operator without a terminal does."""

    def __init__(self, deployment: Deployment, bundle: Path) -> None:
        self.deployment = deployment
        self.bundle = bundle

    def deploy(self, *options: str, environment: str = "dev") -> subprocess.CompletedProcess[str]:
        """Run one deployment, which may fail."""
        command = [*CLOUDPAR, "deploy", "--env", environment, "--yes", "--no-first-map", "--json", *options]
        return subprocess.run(
            [*command, "--set", f"bundle={self.bundle}"], cwd=ROOT, env=self.deployment.aws.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=COMMAND_S,
        )  # fmt: skip

    def deployed(self, *options: str) -> dict[str, Any]:
        """Run a deployment that succeeds and return its output."""
        ended = self.deploy(*options)
        assert ended.returncode == 0, ended.stderr[-5_000:]
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    def refused(self, *options: str) -> str:
        """Run a deployment that fails and return its error."""
        ended = self.deploy(*options)
        assert ended.returncode == 8, ended.stderr[-5_000:]
        assert ended.stdout == ""
        return ended.stderr.splitlines()[-1]

    def resources(self) -> dict[str, str]:
        """Return the type of each resource of the stack by its logical id."""
        found = self.deployment.aws.client("cloudformation").list_stack_resources(StackName=STACK)
        return {each["LogicalResourceId"]: each["ResourceType"] for each in found["StackResourceSummaries"]}


@pytest.fixture
def operator(deployment: Deployment, bundle: Path) -> Operator:
    return Operator(deployment, bundle)


def test_settings_stay_until_they_are_unset(operator: Operator, tmp_path: Path) -> None:
    watched = {"AWS::SNS::Topic", "AWS::SNS::Subscription", "AWS::CloudWatch::Dashboard"}
    found = operator.deployed("--set", f"alarmEmail={EMAIL}", "--set", "dashboard=true")
    assert sorted(each["name"] for each in found["changes"]) == ["alarmEmail", "dashboard"]
    assert watched <= set(operator.resources().values())

    found = operator.deployed("--set", "requestsPerS=50")
    assert found["changes"] == [{"name": "requestsPerS", "before": None, "after": "50"}]
    assert found["settings"]["alarmEmail"] == EMAIL
    assert watched <= set(operator.resources().values())

    file = tmp_path / "dev.toml"
    file.write_text('workerImage = "example/worker:1"\narchitectures = "x86_64"\nrequestsPerS = 50\n')
    error = operator.refused("--config", str(file))
    assert f"alarmEmail={EMAIL}, dashboard=true" in error
    assert "--unset alarmEmail --unset dashboard" in error
    assert watched <= set(operator.resources().values())

    ended = operator.deploy("--config", str(file), "--unset", "alarmEmail", "--unset", "dashboard")
    assert ended.returncode == 0, ended.stderr[-5_000:]
    assert not watched & set(operator.resources().values())
    assert "Resources that do not stay" in ended.stderr
    assert "deleted" in ended.stderr
    assert operator.deployed("--unset", "requestsPerS")["settings"].keys() == {"workerImage", "architectures", "bundle"}


def test_tables_in_use_stay_until_others_are_named(operator: Operator) -> None:
    own = operator.deployment.outputs()
    restored = {name: f"restored-{name.lower()}" for name in ("PackageTable", "AccountTable")}
    dynamodb = operator.deployment.aws.client("dynamodb")
    for output, name in restored.items():
        there = dynamodb.describe_table(TableName=own[output])["Table"]
        kept = {key: there[key] for key in ("AttributeDefinitions", "KeySchema")}
        indexes = [
            {key: index[key] for key in ("IndexName", "KeySchema", "Projection")}
            for index in there.get("GlobalSecondaryIndexes", ())
        ]
        more = {"GlobalSecondaryIndexes": indexes} if indexes else {}
        dynamodb.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **kept, **more)
    of_before = {account.account_id for account in operator.deployment.accounts()}
    named = [f"--set=packageTable={restored['PackageTable']}", f"--set=accountTable={restored['AccountTable']}"]
    operator.deployed(*named)
    operator.deployment.create_account("restored")
    try:
        operator.deployed("--set", "maxInstances=5")
        assert restored.items() <= operator.deployment.outputs().items()
        assert [account.name for account in operator.deployment.accounts()] == ["restored"]
        assert {own["PackageTable"], own["AccountTable"]} <= set(dynamodb.list_tables()["TableNames"])
        assert "belong together" in operator.refused("--unset", "packageTable")
    finally:
        operator.deployed("--unset", "packageTable", "--unset", "accountTable", "--unset", "maxInstances")
    assert own.items() <= operator.deployment.outputs().items()
    assert of_before <= {account.account_id for account in operator.deployment.accounts()}


def test_a_deployment_that_fails_ends_with_the_failing_resources_reason(operator: Operator) -> None:
    """The name of one of the other environment's resources is taken."""
    parameters, taken = operator.deployment.aws.client("ssm"), "/cloudpar/staging/settings"
    parameters.put_parameter(Name=taken, Value="{}", Type="String")
    chosen = ("--set=workerImage=example/worker:1", "--set=architectures=x86_64")
    ended = operator.deploy(*chosen, environment="staging")
    parameters.delete_parameter(Name=taken)
    assert ended.returncode == 8, ended.stderr[-5_000:]
    last = ended.stderr.splitlines()[-1]
    assert "Cloudpar-staging was not made: " in last
    assert "AWS::SSM::Parameter" in last
    assert len(last) < 1_000
    ended = subprocess.run(
        [sys.executable, "-m", "cloudpar", "destroy", "--env", "staging", "--yes"], cwd=ROOT,
        env=operator.deployment.aws.environment, capture_output=True, text=True, check=False, timeout=COMMAND_S,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
