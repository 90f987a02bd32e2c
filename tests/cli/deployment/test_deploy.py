"""`cloudpar deploy` from nothing to a working map, and each error that can stop it."""

import io
import json
import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli.deployment.conftest import docker, outputs, script
from cli.deployment.stand_in import NAME, StandIn
from cli.here import Here
from cloudpar.cli import first_use
from cloudpar.deployment import checks, profile
from cloudpar.deployment.profile import Profile
from support.fake_master import TOKEN, FakeMaster


def cdk_calls(aws: StandIn) -> list[list[str]]:
    path = aws.folder / "calls"
    return [json.loads(line)["arguments"] for line in path.read_text().splitlines()] if path.exists() else []


def test_deploy_goes_from_nothing_to_a_first_map(master: FakeMaster, aws: StandIn, here: Here) -> None:
    out, err = here("deploy", "--yes", "--account", "ada", "--set", "maxInstances=2")
    assert "The first map took" in out
    assert f"{NAME} is at {master.endpoint}" in out
    for words in (
        "bundled for aarch64-manylinux2014",
        "CREATE_IN_PROGRESS",
        "USD a month while no worker runs",
        "Alarms",
    ):
        assert words in err
    synth, deploy = cdk_calls(aws)
    assert synth[:3] == ["synth", NAME, "--quiet"]
    assert synth[-4:] == ["-c", "env=dev", "-c", "maxInstances=2"]
    assert deploy[:2] == ["deploy", NAME]
    assert [(each.name, each.granted_us) for each in aws.accounts] == [("ada", 36_000_000_000)]
    assert master.seen["start_tasks"] == 1


def test_a_new_deployment_asks_who_gets_its_alarms(
    master: FakeMaster, aws: StandIn, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer(monkeypatch, "ops@example.com\ny\n")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    err = here("deploy", "--no-first-map").err
    assert "alarmEmail=ops@example.com" in cdk_calls(aws)[0]
    assert "Alarms: none" not in err
    here("deploy", "--no-first-map", "--yes")
    assert "alarmEmail=ops@example.com" in cdk_calls(aws)[2]


@pytest.mark.parametrize(("options", "answers"), [(["--yes"], ""), ([], "\ny\n"), (["--unset", "alarmEmail"], "y\n")])
@pytest.mark.usefixtures("master")
def test_a_deployment_whose_alarms_no_address_gets_says_so(
    aws: StandIn, here: Here, monkeypatch: pytest.MonkeyPatch, options: list[str], answers: str
) -> None:
    _answer(monkeypatch, answers)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    err = here("deploy", "--no-first-map", *options).err
    assert "Alarms: none, because no address gets them." in err
    assert "--set alarmEmail=you@example.com" in err
    assert not any(each.startswith("alarmEmail=") for each in cdk_calls(aws)[0])


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("#!/bin/sh\nexit 1\n", "docker does not answer"),
        (docker("linux/amd64"), "Docker cannot build for arm64 here"),
    ],
)
@pytest.mark.usefixtures("master")
def test_codebuild_builds_the_images_where_docker_cannot_and_goes_on_doing_so(
    aws: StandIn, here: Here, home: Path, tool: str, reason: str
) -> None:
    script(home / "bin/docker", tool)
    err = here("deploy", "--no-first-map", "--yes").err
    assert f"{reason}, so AWS CodeBuild builds the worker's images" in " ".join(err.split())
    assert "imageBuild=codebuild" in cdk_calls(aws)[0]
    script(home / "bin/docker", docker("linux/amd64, linux/arm64"))
    assert "CodeBuild" not in here("deploy", "--no-first-map", "--yes").err
    assert "imageBuild=codebuild" in cdk_calls(aws)[2]
    here("deploy", "--no-first-map", "--yes", "--unset", "imageBuild")
    assert "imageBuild=codebuild" not in cdk_calls(aws)[4]


@pytest.mark.usefixtures("master")
def test_docker_builds_the_images_where_it_can(aws: StandIn, here: Here) -> None:
    here("deploy", "--no-first-map", "--yes")
    assert not any(each.startswith("imageBuild") for each in cdk_calls(aws)[0])


def test_tables_are_protected_once_their_stack_exists_if_they_outlive_it(
    master: FakeMaster, aws: StandIn, here: Here
) -> None:
    dynamodb = boto3.client("dynamodb", "us-east-1")
    dynamodb.create_table(
        TableName="packages", KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}], BillingMode="PAY_PER_REQUEST",
    )  # fmt: skip
    aws.retained = {"Packages": "packages", "Token": "a-secret", "Tasks": "a-queue"}
    for policy, protected in [("RetainExceptOnCreate", True), ("RetainExceptOnCreate", True), ("Delete", False)]:
        packages = {"Type": "AWS::DynamoDB::Table", "Properties": {}, "DeletionPolicy": policy}
        aws.template = {**aws.template, "Resources": {**aws.template["Resources"], "Packages": packages}}
        here("deploy", "--yes", "--no-first-map")
        found = dynamodb.describe_table(TableName="packages")["Table"]
        assert found["DeletionProtectionEnabled"] is protected


def test_instance_families_that_the_region_lacks_are_not_deployed(master: FakeMaster, aws: StandIn, here: Here) -> None:
    aws.lacking = {"c8g", "m8g", "c7a"}
    here("deploy", "--yes", "--no-first-map", "--set", "architectures=x86_64")
    synth, _ = cdk_calls(aws)
    assert synth[-4:] == ["-c", "architectures=x86_64", "-c", "unavailableFamilies=c7a"]


def test_the_profile_file_is_its_owners_alone(master: FakeMaster, aws: StandIn, home: Path, here: Here) -> None:
    here("deploy", "--yes", "--no-first-map")
    path = home / ".config/cloudpar/profile.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert profile.read() == Profile(master.endpoint, TOKEN)
    assert aws.token_hashes == [sha256(TOKEN.encode()).hexdigest()]
    assert master.seen["start_tasks"] == 0


def test_deploy_with_json_prints_one_line_with_the_pool_and_without_its_token(
    master: FakeMaster, aws: StandIn, here: Here
) -> None:
    out = here("deploy", "--yes", "--json").out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found["endpoint"] == master.endpoint
    assert {each["state"] for each in found["checks"]} == {"ok"}
    assert found["idle_usd_month"] == round(sum(usd for _, _, usd, option in found["idle"] if not option), 2)
    assert found["first_map_s"] is not None
    assert TOKEN not in out


def test_deploying_again_keeps_account_and_profile(master: FakeMaster, aws: StandIn, here: Here) -> None:
    here("deploy", "--yes")
    assert "update (CREATE_COMPLETE now)" in " ".join(here("deploy", "--yes").err.split())
    assert len(aws.accounts) == 1


def test_a_new_address_is_written_into_the_profiles_of_the_deployment(
    master: FakeMaster, aws: StandIn, home: Path, here: Here
) -> None:
    """A private API has another address than the public one before, and the account's token stays good."""
    profile.write(OTHER)
    here("deploy", "--yes", "--no-first-map")
    here("deploy", "--yes", "--no-first-map", "--activate")
    changed = outputs("https://private.example/cloudpar")
    (aws.folder / "outputs.json").write_text(json.dumps(changed))
    err = here("deploy", "--yes", "--no-first-map", "--set", "maxInstances=3").err
    assert f"the address of {NAME} has changed" in err
    mine = Profile("https://private.example/cloudpar", TOKEN)
    assert (profile.read(), profile.read(home / f".config/cloudpar/profile-{NAME}.toml")) == (mine, mine)
    assert len(aws.accounts) == 1


def test_a_private_api_that_this_machine_does_not_reach_gets_no_first_map(master: FakeMaster) -> None:
    private = {"apiVpcEndpoint": "vpce-0123abcd"}
    assert first_use.reaches("http://127.0.0.1:9/cloudpar", {})
    assert not first_use.reaches("http://127.0.0.1:9/cloudpar", private)
    assert first_use.reaches(master.endpoint, private)


def test_the_stack_of_a_failed_deployment_is_made_again(
    master: FakeMaster, aws: StandIn, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.deploy({}, "ROLLBACK_COMPLETE")
    _answer(monkeypatch, "y\n")
    err = " ".join(here("deploy", "--no-first-map").err.split())
    assert "new (ROLLBACK_COMPLETE now)" in err
    assert f"Create {NAME}?" in err


def test_a_protected_stack_of_a_failed_deployment_is_an_error(master: FakeMaster, aws: StandIn, here: Here) -> None:
    aws.deploy({}, "ROLLBACK_COMPLETE")
    aws.protected = True
    error = here.error("deploy", "--yes")
    assert "--no-enable-termination-protection --stack-name Cloudpar-dev --region us-east-1" in error
    assert cdk_calls(aws) == []


OTHER = Profile("https://other.example", "other")


def test_another_pools_profile_stays_the_one_that_programs_use(
    master: FakeMaster, aws: StandIn, home: Path, here: Here
) -> None:
    active = profile.write(OTHER)
    out = here("deploy", "--yes").out
    beside = home / f".config/cloudpar/profile-{NAME}.toml"
    assert (profile.read(), profile.read(beside)) == (OTHER, Profile(master.endpoint, TOKEN))
    assert stat.S_IMODE(beside.stat().st_mode) == 0o600
    assert "The first map took" in out
    assert f"{active} stays as it is" in out
    assert f"export CLOUDPAR_PROFILE={beside}" in out
    assert "cloudpar deploy --env dev --activate" in out
    here("deploy", "--yes", "--no-first-map")
    assert (profile.read(), len(aws.accounts)) == (OTHER, 1)


def test_activate_has_programs_use_the_new_pool_and_keeps_the_others_profile(
    master: FakeMaster, aws: StandIn, home: Path, here: Here
) -> None:
    profile.write(OTHER)
    here("deploy", "--yes", "--no-first-map", "--activate")
    assert profile.read() == Profile(master.endpoint, TOKEN)
    assert profile.read(home / ".config/cloudpar/profile.toml.old") == OTHER


def test_activate_takes_the_token_that_a_deployment_left_and_its_file_stays(
    master: FakeMaster, aws: StandIn, home: Path, here: Here
) -> None:
    profile.write(OTHER)
    here("deploy", "--yes", "--no-first-map")
    here("deploy", "--yes", "--no-first-map", "--activate")
    mine = Profile(master.endpoint, TOKEN)
    assert (profile.read(), profile.read(home / f".config/cloudpar/profile-{NAME}.toml")) == (mine, mine)
    assert len(aws.accounts) == 1


def test_an_account_whose_profile_was_kept_is_used_again(
    master: FakeMaster, aws: StandIn, home: Path, here: Here
) -> None:
    """This happens when dev and prod are activated in turn."""
    here("deploy", "--yes", "--no-first-map")
    mine = profile.read()
    profile.write(Profile("https://prod.example", "other"))
    here("deploy", "--yes", "--no-first-map", "--activate")
    assert profile.read() == mine
    assert len(aws.accounts) == 1
    folder = home / ".config/cloudpar"
    assert sorted(each.name for each in folder.iterdir()) == ["profile.toml", "profile.toml.old2"]
    assert profile.kept("https://prod.example") == folder / "profile.toml.old2"


def test_a_second_stack_of_the_same_name_costs_no_token(home: Path) -> None:
    """The second stack is in another region."""
    for number in range(2):
        profile.write_beside(Profile(f"https://{number}.example", "token"), NAME)
    assert [profile.kept(f"https://{number}.example") is not None for number in range(2)] == [True, True]


def test_a_kept_profile_is_used_again_where_there_is_none(
    master: FakeMaster, aws: StandIn, home: Path, here: Here
) -> None:
    profile.write(Profile(master.endpoint, "mine")).rename(home / ".config/cloudpar/profile.toml.old")
    here("deploy", "--yes", "--no-first-map")
    assert (profile.read(), aws.accounts) == (Profile(master.endpoint, "mine"), [])


def test_of_several_kept_profiles_the_newest_counts(home: Path) -> None:
    for number, suffix in enumerate(("2", "", "3")):
        path = profile.write(Profile("https://pool.example/", f"token{number}"))
        os.utime(path, (number, number))
        path.rename(path.with_name(f"profile.toml.old{suffix}"))
    path.with_name("profile.toml.old4").write_text("no profile")
    assert profile.kept("https://pool.example") == path.with_name("profile.toml.old3")
    assert profile.kept("https://other.example") is None


def test_all_pools_profiles_are_kept(home: Path) -> None:
    for number in range(4):
        path = profile.write(Profile(f"https://{number}.example", "token"))
    kept = [path.with_name(f"profile.toml.old{suffix}").read_text() for suffix in ("", "2", "3")]
    assert [f"{number}.example" in text for number, text in enumerate(kept)] == [True] * 3


def test_a_no_changes_nothing(master: FakeMaster, aws: StandIn, monkeypatch: pytest.MonkeyPatch, here: Here) -> None:
    _answer(monkeypatch, "n\n")
    here("deploy", code=130)
    assert [call[0] for call in cdk_calls(aws)] == ["synth"]
    assert aws.accounts == []


@pytest.mark.parametrize("stdin", [io.StringIO(), None])
def test_without_a_terminal_it_needs_a_yes(
    master: FakeMaster, aws: StandIn, monkeypatch: pytest.MonkeyPatch, here: Here, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    assert f"no terminal to answer 'Create {NAME}?': add --yes" in here.error("deploy", code=2)
    assert [call[0] for call in cdk_calls(aws)] == ["synth"]
    assert aws.accounts == []


def test_ctrl_d_at_a_terminal_is_a_no(master: FakeMaster, monkeypatch: pytest.MonkeyPatch, here: Here) -> None:
    _answer(monkeypatch, "")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    here("deploy", code=130)


def test_a_region_without_bootstrap_gets_it_first(master: FakeMaster, aws: StandIn, here: Here) -> None:
    boto3.client("ssm", "us-east-1").delete_parameter(Name=checks.BOOTSTRAP_PARAMETER)
    here("deploy", "--yes", "--no-first-map", "--region", "eu-west-1")
    assert [call[0] for call in cdk_calls(aws)] == ["synth", "bootstrap", "deploy"]
    assert cdk_calls(aws)[1] == ["bootstrap", "aws://123456789012/eu-west-1", "--app", ""]
    regions = [json.loads(line)["region"] for line in (aws.folder / "calls").read_text().splitlines()]
    assert set(regions) == {"eu-west-1"}


@pytest.mark.parametrize("command", ["synth", "deploy"])
def test_a_failure_of_the_cdk_is_one_line(master: FakeMaster, aws: StandIn, here: Here, command: str) -> None:
    (aws.folder / f"fail-{command}").write_text("cloudpar: drainMinutes=1 must be a whole number from 2 to 360\n")
    error = here.error("deploy", "--yes")
    assert f"cdk {command} failed (exit status 1)" in error
    assert "drainMinutes=1 must be" in error
    assert aws.accounts == []


def test_functions_that_cannot_be_built_are_an_error(master: FakeMaster, project: Path, here: Here) -> None:
    script(project / "functions/bundle.sh", "#!/bin/sh\necho no wheel for msgspec; exit 3\n")
    assert "building the functions failed (exit status 3): no wheel" in here.error("deploy", "--yes")


def test_the_functions_are_built_with_the_uv_that_was_found(
    master: FakeMaster, project: Path, home: Path, here: Here
) -> None:
    script(project / "functions/bundle.sh", '#!/bin/sh\necho "with $UV"\n')
    assert f"with {home}/bin/uv" in here("deploy", "--yes", "--no-first-map").err


def test_a_failed_check_stops_before_anything(master: FakeMaster, aws: StandIn, here: Here) -> None:
    aws.quotas["L-34B43A08"] = 0.0
    assert "aws service-quotas request-service-quota-increase" in here.error("deploy", "--yes")
    assert cdk_calls(aws) == []


@pytest.mark.parametrize("setting", ["nonsense", "=1", "env=prod"])
def test_settings_that_cannot_be_read_are_an_error(master: FakeMaster, here: Here, setting: str) -> None:
    assert "--set" in here.error("deploy", "--set", setting, code=2)


def test_a_failing_account_function_is_an_error(master: FakeMaster, aws: StandIn, here: Here) -> None:
    aws.account_function = lambda _: RuntimeError("no table")
    error = here.error("deploy", "--yes")
    assert "account-function failed: no table" in error
    assert profile.read() is None


@pytest.mark.parametrize("answer", [None, [], {"status": 200}, "text"])
def test_an_account_function_of_another_release(master: FakeMaster, aws: StandIn, here: Here, answer: Any) -> None:
    aws.account_function = lambda _: answer
    assert "run `cloudpar deploy` again" in here.error("deploy", "--yes", code=1)


def test_no_worker_comes_for_the_first_map(master: FakeMaster, here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    master.automatic = False
    monkeypatch.setattr("cloudpar.cli.first_use.FIRST_MAP_S", 0.0)
    assert "cloudpar status" in here.error("deploy", "--yes")


def _answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
