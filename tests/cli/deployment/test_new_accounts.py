"""The checks of limits that new AWS accounts have, and of instance types by zone."""

from pathlib import Path

import boto3
import pytest

from cli.deployment.stand_in import NAME, StandIn
from cloudpar.deployment import checks
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.check import Check
from cloudpar.deployment.failures import DeploymentError
from cloudpar.deployment.plan import Plan, read_plan
from cloudpar.deployment.project import find_project

PLAN = read_plan("dev", {})


def look(name: str, plan: Plan = PLAN, region: str | None = None) -> Check:
    found = checks.check(Aws(region), find_project(None), plan)
    return next(each for each in found.checks if each.name == name)


def make_vpcs(count: int, stack: str | None = None) -> None:
    """Make VPCs until there are `count`, the last one as CloudFormation makes it for a stack."""
    ec2 = boto3.client("ec2", "us-east-1")
    for _ in range(count - len(ec2.describe_vpcs()["Vpcs"])):
        made = ec2.create_vpc(CidrBlock="10.71.0.0/16")["Vpc"]["VpcId"]
    if stack is not None:
        ec2.create_tags(Resources=[made], Tags=[{"Key": "aws:cloudformation:stack-name", "Value": stack}])


def test_a_free_plan_stops_a_deployment_whose_instances_could_not_start(aws: StandIn, project: Path) -> None:
    aws.plan = "FREE"
    found = look("account plan")
    assert found.state == "failed"
    assert found.found.startswith("free plan, which permits only c7i-flex.large, m7i-flex.large, t3.micro, ")
    assert "upgrade the account to the paid plan" in found.fix
    works = "--set families=c7i-flex,m7i-flex --set architectures=x86_64 --set instanceSize=large"
    assert found.fix.endswith(works)
    with pytest.raises(DeploymentError, match="account plan: free plan"):
        checks.check(Aws(), find_project(None), PLAN).require()


def test_the_settings_that_the_check_of_the_plan_suggests_pass_all_checks(aws: StandIn, project: Path) -> None:
    aws.plan = "FREE"
    words = look("account plan").fix.split("deploy with ")[1].replace("--set ", "").split()
    suggested = read_plan("prod", dict(each.split("=", 1) for each in words))
    found = checks.check(Aws(), find_project(None), suggested)
    assert {each.name: each.state for each in found.checks}["account plan"] == "ok"
    found.require()


def test_a_free_plan_that_permits_some_of_the_types_is_a_warning(aws: StandIn, project: Path) -> None:
    aws.plan = "FREE"
    found = look("account plan", read_plan("dev", {"families": "c7i,c7i-flex", "architectures": "x86_64"}))
    assert found.state == "warning"
    assert found.found.endswith(", not c7i.large")


def test_a_free_plan_without_a_suitable_type_only_suggests_the_paid_one(aws: StandIn, project: Path) -> None:
    aws.plan, aws.eligible = "FREE", ["t3.micro"]
    assert look("account plan").fix.endswith("(AWS console: Billing and Cost Management)")


def test_the_plan_is_read_in_the_only_region_that_has_its_service(aws: StandIn, project: Path) -> None:
    look("account plan", region="eu-central-1")
    assert aws.regions["GetAccountPlanState"] == "us-east-1"
    assert aws.regions["DescribeAvailabilityZones"] == "eu-central-1"


def test_an_account_without_a_plan_may_start_all_types(aws: StandIn, project: Path) -> None:
    aws.refusals["GetAccountPlanState"] = ("ResourceNotFoundException", "no plan")
    assert look("account plan").state == "ok"


def test_the_plan_is_not_read_where_aws_has_none(aws: StandIn, project: Path) -> None:
    aws.answer("GetCallerIdentity", {"Account": "123456789012", "Arn": "arn:aws-cn:iam::123456789012:user/ada"})
    found = checks.check(Aws(), find_project(None), PLAN)
    assert "account plan" not in {each.name for each in found.checks}
    assert "GetAccountPlanState" not in aws.regions


def test_free_types_that_may_not_be_listed_are_no_obstacle(aws: StandIn, project: Path) -> None:
    aws.plan = "FREE"
    aws.refusals["DescribeInstanceTypes"] = ("UnauthorizedOperation", "no")
    found = look("account plan")
    assert found.state == "warning"
    assert "ec2:DescribeInstanceTypes" in found.fix


def test_a_region_without_room_for_a_vpc_stops_a_new_deployment(aws: StandIn, project: Path) -> None:
    make_vpcs(4)
    assert (look("VPC quota").state, look("VPC quota").found) == ("ok", "4 VPCs of 5 in us-east-1")
    make_vpcs(5)
    found = look("VPC quota")
    assert (found.state, found.found) == ("failed", "5 VPCs of 5 in us-east-1: no room for one more")
    assert "--service-code vpc --quota-code L-F678F1CE --desired-value 6 --region us-east-1" in found.fix


def test_an_update_needs_no_further_vpc(aws: StandIn, project: Path) -> None:
    make_vpcs(5, stack=NAME)
    assert look("VPC quota").state == "ok"
    assert look("VPC quota", read_plan("prod", {})).state == "failed"


def test_a_zone_that_offers_no_type_is_a_warning(aws: StandIn, project: Path) -> None:
    aws.bare_zones = {"us-east-1b"}
    found = look("types by zone")
    assert (found.state, found.found) == (
        "warning", "us-east-1b offers none of them: instances start only in the other zones"
    )  # fmt: skip
    assert "--set zones=" in found.fix


def test_a_network_of_zones_that_offer_no_type_stops_a_deployment(aws: StandIn, project: Path) -> None:
    aws.bare_zones = {"us-east-1a", "us-east-1b"}
    found = look("types by zone")
    assert (found.state, found.fix) == ("failed", "use more zones: --set zones=3")
    assert look("types by zone", read_plan("dev", {"zones": "3"})).state == "warning"


def test_a_zone_that_needs_an_opt_in_does_not_count(aws: StandIn, project: Path) -> None:
    aws.bare_zones = {"us-east-1a", "us-east-1b", "us-east-1c"}
    assert look("instance types").state == "failed"
