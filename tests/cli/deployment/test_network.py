"""The checks of an existing network, which the settings vpcId and subnetIds name."""

from pathlib import Path
from typing import Any

import boto3
import pytest

from cli.deployment.stand_in import StandIn
from cloudpar.deployment import checks, network
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.check import Check
from cloudpar.deployment.plan import Plan, read_plan
from cloudpar.deployment.project import find_project


class Net:
    """A VPC with two subnets, which are in zones a and b, and share a route table."""

    def __init__(self) -> None:
        self.ec2 = boto3.client("ec2", "us-east-1")
        self.vpc = self.ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [self.subnet(f"10.1.{number}.0/24", f"us-east-1{zone}") for number, zone in enumerate("ab")]
        (table,) = self.ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [self.vpc]}])["RouteTables"]
        self.main = table["RouteTableId"]

    def subnet(self, block: str, zone: str) -> str:
        made = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=block, AvailabilityZone=zone)
        return str(made["Subnet"]["SubnetId"])

    def gateway(self) -> str:
        """Attach an internet gateway."""
        gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=self.vpc)
        return str(gateway)

    def nat(self) -> str:
        """Make a NAT gateway."""
        made = self.ec2.create_nat_gateway(SubnetId=self.subnets[0], ConnectivityType="private")
        return str(made["NatGateway"]["NatGatewayId"])

    def route(self, table: str = "", **target: str) -> None:
        """Route the internet to a target."""
        self.ec2.create_route(RouteTableId=table or self.main, DestinationCidrBlock="0.0.0.0/0", **target)

    def endpoint(self, service: str, kind: Any = "Gateway", **more: Any) -> str:
        name = f"com.amazonaws.us-east-1.{service}"
        made = self.ec2.create_vpc_endpoint(VpcId=self.vpc, ServiceName=name, VpcEndpointType=kind, **more)
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def plan(self, *subnets: str, **settings: str) -> Plan:
        """Return the plan of a deployment into this network."""
        named = {"vpcId": self.vpc, "subnetIds": ", ".join(subnets or self.subnets)}
        return read_plan("prod", named | settings)


@pytest.fixture
def net(aws: StandIn) -> Net:
    return Net()


def one(name: str, plan: Plan) -> Check:
    return next(each for each in network.check(Aws(), plan) if each.name == name)


def test_private_subnets_behind_a_nat_gateway_pass(net: Net, project: Path) -> None:
    net.route(NatGatewayId=net.nat())
    net.endpoint("s3")
    found = checks.check(Aws(), find_project(None), net.plan())
    by_name = {each.name: each for each in found.checks}
    assert {by_name[name].state for name in ("subnets", "routes", "VPC endpoints", "types by zone")} == {"ok"}
    assert by_name["types by zone"].found == "each of us-east-1a, us-east-1b offers some"
    assert by_name["subnets"].found.startswith(f"2 subnets of {net.vpc}, with room for ")


def test_a_given_network_needs_no_room_for_a_further_vpc_and_no_zones(net: Net, project: Path) -> None:
    found = checks.check(Aws(), find_project(None), net.plan())
    assert {"VPC quota", "zones"}.isdisjoint(each.name for each in found.checks)
    assert not {"subnets", "routes", "VPC endpoints"} & {
        each.name for each in checks.check(Aws(), find_project(None), read_plan("prod", {})).checks
    }


def test_subnets_that_do_not_exist_are_named(net: Net, project: Path) -> None:
    plan = net.plan("subnet-0000000000000000a", "subnet-0000000000000000b")
    found = one("subnets", plan)
    assert (found.state, found.found) == (
        "failed", "subnet-0000000000000000a, subnet-0000000000000000b: not in us-east-1"
    )  # fmt: skip
    assert "types by zone" not in [each.name for each in checks.check(Aws(), find_project(None), plan).checks]


def test_a_subnet_of_another_vpc_is_refused(net: Net) -> None:
    other = Net()
    found = one("subnets", net.plan(net.subnets[0], other.subnets[0]))
    assert found.state == "failed"
    assert found.found == f"{other.subnets[0]} of {other.vpc}, and not of {net.vpc}"


def test_subnets_that_are_too_small_for_the_fleet_are_a_warning(net: Net) -> None:
    small = [net.subnet(f"10.1.9.{16 * number}/28", f"us-east-1{zone}") for number, zone in enumerate("ab")]
    found = one("subnets", net.plan(*small, maxInstances="30"))
    assert found.state == "warning"
    assert found.found == f"2 subnets of {net.vpc}, with room for 22 instances, of up to 30"
    assert "--set maxInstances=22" in found.fix


def test_subnets_of_one_zone_are_a_warning(net: Net) -> None:
    found = one("subnets", net.plan(net.subnets[0]))
    assert (found.state, "another zone" in found.fix) == ("warning", True)


def test_a_subnet_without_a_way_to_the_internet_stops_a_deployment(net: Net) -> None:
    """The main table routes the internet, but the second subnet has a table of its own."""
    net.route(NatGatewayId=net.nat())
    own = net.ec2.create_route_table(VpcId=net.vpc)["RouteTable"]["RouteTableId"]
    net.ec2.associate_route_table(RouteTableId=own, SubnetId=net.subnets[1])
    found = one("routes", net.plan())
    assert (found.state, found.found) == ("failed", f"no way to the internet from {net.subnets[1]}")
    assert "NAT gateway" in found.fix
    net.route(own, NatGatewayId=net.nat())
    assert one("routes", net.plan()).state == "ok"


def test_an_internet_gateway_needs_subnets_that_give_public_addresses(net: Net) -> None:
    net.route(GatewayId=net.gateway())
    found = one("routes", net.plan())
    assert (found.state, found.found) == (
        "failed", f"an internet gateway, but no public addresses in {', '.join(sorted(net.subnets))}"
    )  # fmt: skip
    for each in net.subnets:
        net.ec2.modify_subnet_attribute(SubnetId=each, MapPublicIpOnLaunch={"Value": True})
    assert one("routes", net.plan()).state == "ok"


def test_an_endpoint_that_hides_public_apis_stops_a_deployment(net: Net) -> None:
    """API Gateway answers 403 to every request of a worker that goes through such an endpoint."""
    net.endpoint("s3")
    hiding = net.endpoint("execute-api", "Interface", SubnetIds=net.subnets, PrivateDnsEnabled=True)
    found = one("VPC endpoints", net.plan())
    assert (found.state, found.found) == ("failed", f"{hiding} hides public APIs from this VPC")
    assert "private DNS" in found.fix


def test_an_endpoint_of_the_api_without_private_dns_hides_nothing(net: Net) -> None:
    net.endpoint("s3")
    net.endpoint("execute-api", "Interface", SubnetIds=net.subnets, PrivateDnsEnabled=False)
    assert one("VPC endpoints", net.plan()).state == "ok"


def test_payloads_without_an_endpoint_of_the_bucket_are_a_warning(net: Net) -> None:
    found = one("VPC endpoints", net.plan())
    assert (found.state, found.found) == ("warning", "none for S3")


@pytest.mark.parametrize(
    ("operation", "name"),
    [("DescribeSubnets", "subnets"), ("DescribeRouteTables", "routes"), ("DescribeVpcEndpoints", "VPC endpoints")],
)
def test_what_may_not_be_looked_up_is_a_warning(net: Net, aws: StandIn, operation: str, name: str) -> None:
    aws.refusals[operation] = ("UnauthorizedOperation", "no")
    found = one(name, net.plan())
    assert (found.state, found.found) == ("warning", "could not be looked up")


def test_zones_that_offer_no_type_need_other_subnets(net: Net, aws: StandIn, project: Path) -> None:
    aws.bare_zones = {"us-east-1a"}
    found = checks.check(Aws(), find_project(None), net.plan())
    (types,) = (each for each in found.checks if each.name == "types by zone")
    assert (types.state, "--set subnetIds=" in types.fix) == ("warning", True)
    assert "--set zones=" not in types.fix


def test_a_private_api_needs_an_endpoint_of_its_vpc(net: Net) -> None:
    net.endpoint("s3")
    of_s3 = net.endpoint("s3", "Interface", SubnetIds=net.subnets)
    for wrong in (of_s3, "vpce-0123abcd", Net().endpoint("execute-api", "Interface")):
        found = one("VPC endpoints", net.plan(apiVpcEndpoint=wrong))
        assert (found.state, found.found) == ("failed", f"{wrong} is none of this VPC for API Gateway")
        assert "leave apiVpcEndpoint out for a public API" in found.fix
    right = net.endpoint("execute-api", "Interface", SubnetIds=net.subnets, PrivateDnsEnabled=True)
    assert one("VPC endpoints", net.plan(apiVpcEndpoint=f" {right} ")).state == "ok"
