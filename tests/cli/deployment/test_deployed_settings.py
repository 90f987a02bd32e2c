"""Settings of a deployment, tables in use, and data: what a deployment changes, and what it refuses to change.

tests/e2e/test_settings.py tests this with a real CDK app on a stand-in for CloudFormation.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cli.deployment.conftest import TEMPLATE, outputs
from cli.deployment.stand_in import NAME, StandIn
from cli.deployment.test_deploy import cdk_calls
from cli.here import Here
from cloudpar.cli.application import run
from support.fake_master import FakeMaster

QUIETLY = ["deploy", "--yes", "--no-first-map"]


def deploy(*options: str) -> None:
    assert run([*QUIETLY, *options]) == 0


def context(aws: StandIn) -> set[str]:
    """Return the context of the last synthesis."""
    synth = [call for call in cdk_calls(aws) if call[0] == "synth"][-1]
    return {value for option, value in pairwise(synth) if option == "-c"}


def kept(aws: StandIn) -> dict[str, str]:
    found: dict[str, str] = json.loads(aws.deployed["Resources"]["Settings"]["Properties"]["Value"])
    return found


@pytest.fixture
def file(home: Path) -> Path:
    return home / "prod.toml"


def test_settings_stay_until_they_are_unset_by_name(master: FakeMaster, aws: StandIn) -> None:
    deploy("--set", "alarmEmail=ops@example.com", "--set", "dashboard=true")
    deploy("--set", "requestsPerS=50")
    assert kept(aws) == {"alarmEmail": "ops@example.com", "dashboard": "true", "requestsPerS": "50"}
    assert context(aws) == {"env=dev", "alarmEmail=ops@example.com", "dashboard=true", "requestsPerS=50"}


def test_restored_tables_stay_in_use(master: FakeMaster, aws: StandIn) -> None:
    deploy("--set", "packageTable=restored-packages", "--set", "accountTable=restored-accounts")
    deploy("--set", "maxInstances=5")
    assert kept(aws) == {
        "packageTable": "restored-packages", "accountTable": "restored-accounts", "maxInstances": "5",
    }  # fmt: skip


def test_each_difference_is_shown(master: FakeMaster, here: Here) -> None:
    deploy("--set", "maxInstances=5", "--set", "dashboard=true", "--set", "zones=2")
    out, err = here(*QUIETLY, "--json", "--set", "maxInstances=8", "--set", "volumeGib=30", "--unset", "dashboard")
    assert json.loads(out)["changes"] == [
        {"name": "dashboard", "before": "true", "after": None},
        {"name": "maxInstances", "before": "5", "after": "8"},
        {"name": "volumeGib", "before": None, "after": "30"},
    ]
    assert json.loads(out)["settings"] == {"maxInstances": "8", "volumeGib": "30", "zones": "2"}
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in err.splitlines() if line.startswith("│")]
    for row in (["dashboard", "true", "(default)"], ["maxInstances", "5", "8"], ["zones", "2", "2"]):
        assert row in shown


def test_a_file_holds_all_settings(master: FakeMaster, aws: StandIn, file: Path) -> None:
    file.write_text('maxInstances = 8\ndashboard = true\nfamilies = ["c7g", "c7i"]\nalarmEmail = "ops@example.com"\n')
    deploy("--config", str(file), "--set", "maxInstances=9")
    expected = {"maxInstances": "9", "dashboard": "true", "families": "c7g,c7i", "alarmEmail": "ops@example.com"}
    assert kept(aws) == expected


def test_what_a_file_does_not_name_any_more_is_refused_until_it_is_unset(
    master: FakeMaster, aws: StandIn, file: Path, here: Here
) -> None:
    deploy("--set", "alarmEmail=ops@example.com", "--set", "maxInstances=5")
    file.write_text("maxInstances = 6\n")
    calls = len(cdk_calls(aws))
    error = here.error(*QUIETLY, "--config", str(file))
    assert f"{NAME} has alarmEmail=ops@example.com, which the file does not name" in error
    assert "--unset alarmEmail" in error
    assert len(cdk_calls(aws)) == calls
    deploy("--config", str(file), "--unset", "alarmEmail")
    deploy("--config", str(file), "--unset", "alarmEmail")
    assert kept(aws) == {"maxInstances": "6"}
    assert "unset=alarmEmail" in context(aws)


@pytest.mark.parametrize("options", [("--set", "zones=2"), ("--config", "FILE")])
def test_one_setting_cannot_be_set_and_unset(
    master: FakeMaster, file: Path, here: Here, options: tuple[str, str]
) -> None:
    file.write_text("zones = 2\n")
    named = [str(file) if each == "FILE" else each for each in options]
    assert "zones: set and unset at once" in here.error(*QUIETLY, *named, "--unset", "zones", code=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("maxInstances: 8", "is no TOML file"),
        ("[fleet]\nmaxInstances = 8", "fleet must be a text, a whole number"),
        ("maxInstances = 8.5", "maxInstances must be a text"),
        ("families = []", "families must be a text"),
        ('env = "prod"', "name the environment by --env"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    master: FakeMaster, file: Path, here: Here, text: str, words: str
) -> None:
    file.write_text(text)
    assert words in here.error(*QUIETLY, "--config", str(file), code=2)


def test_a_file_that_is_not_there_is_named(master: FakeMaster, file: Path, here: Here) -> None:
    assert f"{file} cannot be read: No such file" in here.error(*QUIETLY, "--config", str(file), code=2)


def of_0_2_0(**resources: Any) -> dict[str, Any]:
    """Return a template that keeps no settings."""
    tables = {"PackageTable": {"Value": {"Ref": "Packages"}}, "AccountTable": {"Value": {"Ref": "Accounts"}}}
    return {"Resources": {**TEMPLATE["Resources"], **resources}, "Outputs": tables}


def test_the_settings_of_an_earlier_releases_stack_are_requested_once(
    master: FakeMaster, aws: StandIn, file: Path, here: Here
) -> None:
    aws.deploy(outputs(master.endpoint))
    mail = {"Type": "AWS::SNS::Subscription", "Properties": {"Endpoint": "ops@example.com"}}
    there = of_0_2_0(Mail=mail, Board={"Type": "AWS::CloudWatch::Dashboard"})
    there["Outputs"]["PackageTable"]["Value"] = "restored-packages"
    there["Outputs"]["AccountTable"]["Value"] = "restored-accounts"
    aws.deployed = there
    error = here.error(*QUIETLY, "--set", "maxInstances=5")
    assert "by a release that did not keep its settings" in error
    known = "accountTable=restored-accounts, alarmEmail=ops@example.com, dashboard=true, packageTable=restored-packages"
    assert known in error
    file.write_text("maxInstances = 5\n")
    assert f"{NAME} has {known}" in here.error(*QUIETLY, "--config", str(file))
    file.write_text('packageTable = "restored-packages"\naccountTable = "restored-accounts"\ndashboard = true\n')
    deploy("--config", str(file), "--unset", "alarmEmail")
    deploy("--set", "maxInstances=5")
    assert kept(aws).keys() == {"packageTable", "accountTable", "dashboard", "maxInstances"}


def test_other_tables_are_refused_unless_they_are_named(master: FakeMaster, aws: StandIn, here: Here) -> None:
    """This happens when a release gives the stack's own table another name."""
    deploy()
    there = aws.deployed
    there["Outputs"]["AccountTable"] = {"Value": {"Ref": "OldAccounts"}}
    aws.deployed = there
    error = here.error(*QUIETLY)
    assert "another table for its output AccountTable (its own OldAccounts now, its own Accounts then)" in error
    assert "--set accountTable=NAME" in error
    assert [call for call in cdk_calls(aws) if "prepare-change-set" in call] == []


def test_the_settings_of_a_first_deployment_that_failed_stay(master: FakeMaster, aws: StandIn) -> None:
    deploy("--set", "maxInstances=5")
    aws.deploy({}, "ROLLBACK_COMPLETE")
    deploy("--set", "zones=2")
    assert kept(aws) == {"maxInstances": "5", "zones": "2"}


def change(action: str, name: str, kind: str, **more: str) -> dict[str, Any]:
    return {"Action": action, "LogicalResourceId": name, "ResourceType": kind, **more}


@pytest.mark.parametrize(
    ("found", "fate"),
    [
        (change("Remove", "T", "AWS::DynamoDB::Table", PolicyAction="Delete"), "deleted"),
        (change("Remove", "T", "AWS::DynamoDB::Table", PolicyAction="Retain"), "it stays in the account"),
        (change("Modify", "T", "AWS::S3::Bucket", Replacement="True"), "replaced by a new one"),
        (change("Remove", "T", "AWS::SQS::Queue", PolicyAction="Delete"), "deleted"),
        (change("Modify", "T", "AWS::SecretsManager::Secret", Replacement="Conditional"), "may be replaced"),
    ],
)
def test_a_deployment_that_would_take_data_is_refused_and_changes_nothing(
    master: FakeMaster, aws: StandIn, here: Here, found: dict[str, Any], fate: str
) -> None:
    deploy()
    aws.changes = [found]
    error = here.error(*QUIETLY, "--set", "zones=2")
    assert "nothing was changed" in error
    assert f"T ({found['ResourceType']}: " in error
    assert fate in error
    assert [call for call in cdk_calls(aws) if "execute-change-set" in call] == []
    assert not (aws.folder / "change-set").exists()
    assert kept(aws) == {}


def test_resources_that_are_deleted_are_shown_first(master: FakeMaster, aws: StandIn, here: Here) -> None:
    deploy("--set", "dashboard=true")
    aws.changes = [
        change("Remove", "Board", "AWS::CloudWatch::Dashboard"),
        change("Modify", "Client", "AWS::Lambda::Function", Replacement="False"),
        change("Add", "New", "AWS::SNS::Topic"),
        change("Modify", "Host", "AWS::EC2::LaunchTemplate", Replacement="True"),
    ]
    _, err = here(*QUIETLY, "--unset", "dashboard")
    shown = [line for line in err.splitlines() if "Board" in line or "Host" in line]
    assert [line.split("│")[3].strip() for line in shown] == ["deleted", "replaced by a new one"]


def test_a_deployment_without_changes_executes_nothing(master: FakeMaster, aws: StandIn) -> None:
    deploy("--set", "zones=2")
    deploy()
    assert [call for call in cdk_calls(aws) if "execute-change-set" in call] == []


def test_a_failed_deployment_ends_with_the_reason_of_the_resource_that_failed_first(
    master: FakeMaster, aws: StandIn, here: Here
) -> None:
    deploy()
    aws.happen(("Old", "AWS::SQS::Queue", "UPDATE_FAILED", "of an earlier deployment"))
    (aws.folder / "fail-deploy").write_text(
        "Cloudpar-dev failed\n    at new Fleet (fleet.ts:1)\n  ...node internals...\n"
    )
    alarm = "AWS::CloudWatch::Alarm"
    error = here.error(*QUIETLY, "--set", "zones=2")
    assert error.endswith("cdk deploy failed (exit status 1): Cloudpar-dev failed")
    aws.happen_in_failure(
        ("Capacity", alarm, "CREATE_FAILED", "metric math is not supported"),
        ("Tasks", "AWS::SQS::Queue", "CREATE_FAILED", "Resource creation cancelled"),
        (NAME, "AWS::CloudFormation::Stack", "UPDATE_ROLLBACK_FAILED", "failed to create: [Capacity]"),
    )
    error = here.error(*QUIETLY, "--set", "zones=2")
    assert error.endswith(f"{NAME} is as it was before: Capacity ({alarm}): metric math is not supported")


def test_a_failed_first_deployment_ends_with_the_reason_too(master: FakeMaster, aws: StandIn, here: Here) -> None:
    (aws.folder / "fail-deploy").write_text("Cloudpar-dev failed\n")
    aws.happen_in_failure(("Group", "AWS::AutoScaling::AutoScalingGroup", "CREATE_FAILED", "no such role"))
    error = here.error(*QUIETLY)
    assert error.endswith(f"{NAME} was not made: Group (AWS::AutoScaling::AutoScalingGroup): no such role")
