"""The checks that run before a deployment; each finding says how to repair it."""

import json
import sys
from pathlib import Path

import boto3
import pytest

from cli.deployment.conftest import docker, script
from cli.deployment.stand_in import StandIn
from cli.here import Here
from cloudpar.deployment import checks
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.check import Check
from cloudpar.deployment.checks import Findings
from cloudpar.deployment.failures import DeploymentError
from cloudpar.deployment.plan import FAMILIES, Plan, read_plan
from cloudpar.deployment.project import Project, find_project
from cloudpar.errors import ConfigurationError

PLAN = read_plan("prod", {})


def look(plan: Plan = PLAN) -> Findings:
    return checks.check(Aws(), find_project(None), plan)


def one(name: str, plan: Plan = PLAN) -> Check:
    return next(each for each in look(plan).checks if each.name == name)


def bootstrapped(version: str = "21") -> None:
    boto3.client("ssm", "us-east-1").put_parameter(Name=checks.BOOTSTRAP_PARAMETER, Value=version, Type="String")


def test_all_checks_pass_on_a_prepared_machine(aws: StandIn, project: Path) -> None:
    bootstrapped()
    found = look()
    assert {each.state for each in found.checks} == {"ok"}
    assert (found.account, found.region) == ("123456789012", "us-east-1")
    found.require()


def test_invalid_credentials_are_an_error(aws: StandIn, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aws.refusals["GetCallerIdentity"] = ("InvalidClientTokenId", "The security token is invalid.")
    with pytest.raises(DeploymentError, match="aws configure"):
        look()


@pytest.mark.parametrize("code", ["ExpiredToken", "UnauthorizedSSOTokenError"])
def test_expired_credentials_are_an_error(aws: StandIn, project: Path, code: str) -> None:
    aws.refusals["GetCallerIdentity"] = (code, "expired")
    with pytest.raises(DeploymentError, match="have expired: run"):
        look()


def test_a_missing_region_is_an_error(aws: StandIn, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(ConfigurationError, match="--region"):
        Aws()


def test_the_named_region_wins(aws: StandIn) -> None:
    assert Aws("eu-central-1").region == "eu-central-1"


def test_an_unknown_aws_profile_is_an_error(aws: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "unknown")
    with pytest.raises(DeploymentError, match="correct AWS_PROFILE"):
        Aws()


def test_a_missing_botocore_names_the_command_that_installs_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(DeploymentError, match=r"pip install .*'botocore>="):
        Aws()


@pytest.mark.parametrize(
    ("tool", "answer", "check", "words"),
    [
        ("node", "echo v20.10.0", "node", "Node.js 20.11 or newer"),
        ("node", "exit 1", "node", "Node.js 20.11 or newer"),
        ("uv", "exit 127", "uv", "pip install uv"),
        ("docker", "exit 1", "docker", "--set imageBuild=codebuild"),
    ],
)
def test_an_unsuitable_tool_is_reported(  # noqa: PLR0917 - a parameter for each column
    aws: StandIn, project: Path, home: Path, tool: str, answer: str, check: str, words: str
) -> None:
    script(home / "bin" / tool, f"#!/bin/sh\n{answer}\n")
    found = one(check)
    assert found.state == "failed"
    assert words in found.fix


@pytest.mark.parametrize("image", [{"workerImage": "x:1"}, {"imageBuild": "codebuild"}])
def test_an_image_that_is_not_built_here_and_a_bundle_need_neither_docker_nor_uv(
    aws: StandIn, project: Path, image: dict[str, str]
) -> None:
    plan = read_plan("dev", {**image, "bundle": "there"})
    assert {"docker", "image builds", "uv"}.isdisjoint(each.name for each in look(plan).checks)


def test_docker_that_builds_for_its_own_architecture_only(aws: StandIn, project: Path, home: Path) -> None:
    script(home / "bin/docker", docker("linux/amd64, linux/amd64/v2, linux/386"))
    found = one("image builds")
    assert (found.state, found.found) == ("failed", "Docker cannot build for arm64 here")
    assert "tonistiigi/binfmt --install all" in found.fix
    assert found.fix.endswith("--set architectures=x86_64")
    assert one("image builds", read_plan("dev", {"architectures": "x86_64"})).state == "ok"
    assert "--set" not in one("image builds", read_plan("dev", {"architectures": "arm64"})).fix


def test_docker_without_buildx_is_reported(aws: StandIn, project: Path, home: Path) -> None:
    script(home / "bin/docker", "#!/bin/sh\n[ $1 = version ] && echo Docker 28\n")
    found = one("image builds")
    assert found.state == "warning"
    assert "docker-buildx-plugin" in found.fix


def test_a_cdk_of_another_version_is_not_used(aws: StandIn, project: Path, home: Path) -> None:
    script(home / "bin/cdk", "#!/bin/sh\necho '3.0.0 (build 1)'\n")
    assert Project(project).cdk() == ["npx", "--yes", "aws-cdk@2.1148.1"]
    assert one("cdk").found.endswith("which npx downloads")


def test_a_machine_without_cdk_and_npx_is_reported(
    aws: StandIn, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "bin/cdk").unlink()
    (home / "bin/npx").unlink()
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert one("cdk").state == "failed"


def test_node_packages_that_are_not_installed_are_reported(aws: StandIn, project: Path) -> None:
    (project / "node_modules/aws-cdk-lib").rmdir()
    found = one("CDK app")
    assert (found.state, found.fix) == ("failed", f"run `npm ci` in {project}")


def test_a_missing_bootstrap_is_no_obstacle(aws: StandIn, project: Path) -> None:
    assert one("bootstrap").state == "missing"
    bootstrapped("5")
    found = look()
    assert found.missing("bootstrap")
    found.require()  # deploy creates it


def test_a_low_spot_quota_is_a_warning(aws: StandIn, project: Path) -> None:
    aws.quotas["L-34B43A08"] = 5.0
    found = one("spot quota")
    assert (found.state, found.found) == ("warning", "5 spot vCPUs: room for 1 of 4 instances")
    assert "--quota-code L-34B43A08 --desired-value 16 --region us-east-1" in found.fix
    aws.quotas["L-34B43A08"] = 0.0
    with pytest.raises(DeploymentError, match="request-service-quota-increase"):
        look().require()


def test_on_demand_instances_need_no_spot_quota(aws: StandIn, project: Path) -> None:
    aws.quotas |= {"L-34B43A08": 0.0, "L-1216C47A": 5.0}
    bought = read_plan("dev", {"maxInstances": "2", "onDemandBase": "2"})
    assert one("on-demand quota", bought).state == "ok"
    assert "spot quota" not in {each.name for each in look(bought).checks}
    found = one("on-demand quota", read_plan("prod", {"onDemandBase": "2"}))
    assert (found.state, found.found) == ("warning", "5 on-demand vCPUs: room for 1 of 2 instances")
    assert "--quota-code L-1216C47A --desired-value 8" in found.fix


def test_a_region_with_too_few_zones(aws: StandIn, project: Path) -> None:
    aws.zones = 2
    found = one("zones")
    assert (found.state, found.found) == ("failed", "2 availability zones in us-east-1, where 3 are wanted")
    assert found.fix.endswith("--set zones=2")
    with pytest.raises(DeploymentError, match="--set zones=2"):
        look().require()
    assert one("zones", read_plan("prod", {"zones": "2"})).state == "ok"
    assert one("zones", read_plan("dev", {})).state == "ok"
    aws.zones = 1
    assert one("zones").fix == "use another region"


def test_only_zones_that_need_no_opt_in_count(aws: StandIn, project: Path) -> None:
    one("zones")
    assert aws.zone_filters == {
        "zone-type": ["availability-zone"], "opt-in-status": ["opt-in-not-required"], "state": ["available"]
    }  # fmt: skip


def test_families_that_the_region_lacks_are_left_out(aws: StandIn, project: Path) -> None:
    assert look().settings == []
    aws.lacking = {"c8g", "c6g", "m8g", "c7a"}
    found = look(read_plan("dev", {}))
    assert found.settings == ["unavailableFamilies=c6g,c7a,c8g"]
    assert one("instance types").state == "ok"
    assert one("instance types").found == "c8g.xlarge, c6g.xlarge, c7a.xlarge not offered in us-east-1: left out"


def test_families_with_the_chosen_memory_are_looked_up(aws: StandIn, project: Path) -> None:
    assert "m7g.large, " in one("instance types", read_plan("dev", {"memoryPerCore": "4"})).found
    assert "m7g" not in one("instance types", read_plan("dev", {})).found


def test_families_that_were_named_are_not_left_out(aws: StandIn, project: Path) -> None:
    aws.lacking = {"c8g"}
    plan = read_plan("dev", {"families": "c8g, c7g", "architectures": "arm64"})
    found = one("instance types", plan)
    assert (found.state, found.fix) == ("failed", "leave them out: --set families=c7g")
    assert look(plan).settings == []


def test_an_architecture_that_the_region_lacks(aws: StandIn, project: Path) -> None:
    aws.lacking = set(FAMILIES["arm64"])
    found = one("instance types")
    assert found.state == "failed"
    assert "nothing is left for arm64" in found.fix


def test_a_low_lambda_quota_is_a_warning(aws: StandIn, project: Path) -> None:
    aws.quotas["L-B99A9384"] = 10.0
    found = one("Lambda quota")
    assert found.state == "warning"
    assert "--service-code lambda --quota-code L-B99A9384" in found.fix


def test_a_quota_that_was_never_changed_has_its_default(aws: StandIn, project: Path) -> None:
    del aws.quotas["L-34B43A08"]
    assert one("spot quota").found == "5 spot vCPUs: room for 1 of 4 instances"


@pytest.mark.parametrize(
    ("operation", "check", "action"),
    [
        ("DescribeAvailabilityZones", "zones", "ec2:DescribeAvailabilityZones"),
        ("DescribeInstanceTypeOfferings", "instance types", "ec2:DescribeInstanceTypeOfferings"),
        ("GetServiceQuota", "spot quota", "service-quotas:GetServiceQuota"),
        ("GetServiceQuota", "Lambda quota", "service-quotas:GetServiceQuota"),
        ("GetServiceQuota", "VPC quota", "service-quotas:GetServiceQuota"),
        ("DescribeVpcs", "VPC quota", "ec2:DescribeVpcs"),
        ("GetAccountPlanState", "account plan", "freetier:GetAccountPlanState"),
    ],
)
def test_what_may_not_be_looked_up_is_no_obstacle(
    aws: StandIn, project: Path, operation: str, check: str, action: str
) -> None:
    aws.refusals[operation] = ("UnauthorizedOperation", "no")
    bootstrapped()
    found = look()
    found.require()
    (refused,) = (each for each in found.checks if each.name == check)
    assert (refused.state, found.settings) == ("warning", [])
    assert action in refused.fix


@pytest.mark.parametrize(
    ("settings", "vcpus"), [({}, 2), ({"instanceSize": "4xlarge"}, 16), ({"instanceSize": "unheard-of"}, 32)]
)
def test_the_plan_counts_vcpus_by_the_settings(settings: dict[str, str], vcpus: int) -> None:
    assert read_plan("dev", settings).instance_vcpus == vcpus


def test_an_invalid_plan_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--set maxInstances=4"):
        read_plan("dev", {"maxInstances": "many"})
    with pytest.raises(ConfigurationError, match="--set onDemandBase=1"):
        read_plan("dev", {"onDemandBase": "-1"})
    with pytest.raises(ConfigurationError, match="zones=1 is no whole number from 2: write --set zones=2"):
        read_plan("dev", {"zones": "1"})


def test_the_checkout_is_found_from_below(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "functions")
    assert find_project(None).root == project


def test_a_missing_checkout_is_an_error(home: Path, here: Here) -> None:
    (home / "cdk.json").write_text(json.dumps({"app": "another"}))
    assert "clone the repository" in here("deploy", "--project", str(home), code=2).err


def test_a_search_for_a_checkout_that_ends_without_one_says_where_it_looked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloudpar.deployment.project._is_project", lambda _: False)
    with pytest.raises(ConfigurationError, match=r"^neither the working folder nor one above it holds a Cloud Paral"):
        find_project(None)
    with pytest.raises(ConfigurationError, match=f"^{home} holds no Cloud Parallelizer to deploy"):
        find_project(home)
