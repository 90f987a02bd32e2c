"""Checks the existing network that the settings vpcId, subnetIds and apiVpcEndpoint name.

Workers need a way to the internet, for the public API and the packages of their system. In a network without such a
way, instances would start but never reach the master.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from cloudpar._formatting.quantity import quantity

from .aws import Aws
from .check import Check, unless_refused
from .plan import Plan

Found = Mapping[str, Any]

API_SERVICE, BUCKET_SERVICE = "execute-api", "s3"
"""The last parts of the names of two services that VPC endpoints lead to."""

EVERYWHERE = "0.0.0.0/0"


def check(aws: Aws, plan: Plan) -> Iterator[Check]:
    """Check the subnets, their routes and the endpoints of the VPC."""
    yield unless_refused("subnets", partial(_subnets, aws, plan))
    yield unless_refused("routes", partial(_routes, aws, plan))
    yield unless_refused("VPC endpoints", partial(_endpoints, aws, plan))


def zones(aws: Aws, plan: Plan) -> list[str]:
    """Return the names of the subnets' availability zones, in alphabetical order.

    Raises:
        AwsRefused: AWS refuses, or does not answer.
    """
    return sorted({each["AvailabilityZone"] for each in _find(aws, plan)})


def _find(aws: Aws, plan: Plan) -> list[Found]:
    # A filter skips ids that do not exist. Without the filter, AWS would answer with an error that names only the first
    # of these ids.
    wanted = [{"Name": "subnet-id", "Values": list(plan.subnets)}]
    return list(aws.pages("ec2", "describe_subnets", "Subnets", Filters=wanted))


def _subnets(aws: Aws, plan: Plan) -> Check:
    """Check that the subnets exist, belong to the VPC and have room for all instances."""
    name, found = "subnets", {each["SubnetId"]: each for each in _find(aws, plan)}
    missing = [each for each in plan.subnets if each not in found]
    if missing:
        fix = "name subnets that exist (--set subnetIds=), or another region (--region)"
        return Check(name, "failed", f"{', '.join(missing)}: not in {aws.region}", fix)
    strange = [each for each in plan.subnets if found[each]["VpcId"] != plan.vpc]
    if strange:
        vpcs = ", ".join(sorted({found[each]["VpcId"] for each in strange}))
        fix = "name the VPC of all subnets (--set vpcId=), or other subnets (--set subnetIds=)"
        return Check(name, "failed", f"{', '.join(strange)} of {vpcs}, and not of {plan.vpc}", fix)
    room = sum(int(each["AvailableIpAddressCount"]) for each in found.values())
    text = f"{quantity(len(found), 'subnet')} of {plan.vpc}, with room for {quantity(room, 'instance')}"
    if room < plan.max_instances:
        fix = f"use larger subnets, or --set maxInstances={max(room, 1)}"
        return Check(name, "warning", f"{text}, of up to {plan.max_instances}", fix)
    if len({each["AvailabilityZone"] for each in found.values()}) == 1:
        fix = "add a subnet of another zone, so that AWS has more spot instances to choose from"
        return Check(name, "warning", f"{text}, in one availability zone", fix)
    return Check(name, "ok", text)


def _routes(aws: Aws, plan: Plan) -> Check:
    """Check that instances in each subnet reach the internet."""
    name = "routes"
    of_vpc = [{"Name": "vpc-id", "Values": [str(plan.vpc)]}]
    tables = list(aws.pages("ec2", "describe_route_tables", "RouteTables", Filters=of_vpc))
    bare, without_address = [], []
    for subnet in _find(aws, plan):
        way = _way_out(_table(tables, subnet["SubnetId"]))
        if way is None:
            bare.append(subnet["SubnetId"])
        elif way.startswith("igw-") and not subnet["MapPublicIpOnLaunch"]:
            without_address.append(subnet["SubnetId"])
    if bare:
        fix = (
            f"add a route for {EVERYWHERE} to a NAT gateway, a transit gateway or the like: instances need Amazon "
            "Linux's packages, and the API if it is public"
        )
        return Check(name, "failed", f"no way to the internet from {', '.join(sorted(bare))}", fix)
    if without_address:
        fix = "have the subnet give its instances public addresses, or route through a NAT gateway"
        return Check(
            name, "failed", f"an internet gateway, but no public addresses in {', '.join(sorted(without_address))}", fix
        )
    return Check(name, "ok", "each subnet has a way to the internet")


def _table(tables: Iterable[Found], subnet_id: str) -> Found:
    """Return the route table of a subnet: its own table, or the VPC's main table if the subnet has none."""
    main: Found = {}
    for table in tables:
        for each in table.get("Associations", ()):
            if each.get("SubnetId") == subnet_id:
                return table
            if each.get("Main"):
                main = table
    return main


def _way_out(table: Found) -> str | None:
    """Return the id of the gateway (or other target) of a table's route to the internet; None if there is none."""
    for route in table.get("Routes", ()):
        if route.get("DestinationCidrBlock") == EVERYWHERE and route.get("State") == "active":
            targets = ("NatGatewayId", "TransitGatewayId", "GatewayId", "NetworkInterfaceId", "InstanceId")
            return next((str(route[each]) for each in targets if route.get(each)), None)
    return None


def _endpoints(aws: Aws, plan: Plan) -> Check:
    """Check that workers reach the API, and that an endpoint leads to the bucket."""
    name = "VPC endpoints"
    of_vpc = [{"Name": "vpc-id", "Values": [str(plan.vpc)]}]
    found = list(aws.pages("ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=of_vpc))
    ours = [each for each in found if _leads_to(each, API_SERVICE)]
    hiding = [each["VpcEndpointId"] for each in ours if each.get("PrivateDnsEnabled")]
    if plan.api_endpoint is not None:
        state = next((each["State"].lower() for each in ours if each["VpcEndpointId"] == plan.api_endpoint), None)
        if state != "available":
            text = "is none of this VPC for API Gateway" if state is None else f"is {state}"
            fix = (
                f"name an interface endpoint of {plan.vpc} for the service {API_SERVICE} that is available "
                "(--set apiVpcEndpoint=), or leave apiVpcEndpoint out for a public API"
            )
            return Check(name, "failed", f"{plan.api_endpoint} {text}", fix)
    elif hiding:
        fix = (
            "switch off the endpoint's private DNS, or use another VPC: with it, every address of API Gateway leads to "
            "the endpoint, which answers 403 for public APIs such as this one"
        )
        return Check(name, "failed", f"{', '.join(hiding)} hides public APIs from this VPC", fix)
    if not any(_leads_to(each, BUCKET_SERVICE) for each in found):
        fix = (
            "add a gateway endpoint for S3, which is free: a NAT gateway costs about 0.045 USD for each GB of payloads"
        )
        return Check(name, "warning", "none for S3", fix)
    return Check(name, "ok", "payloads go through the one for S3")


def _leads_to(endpoint: Found, service: str) -> bool:
    return str(endpoint["ServiceName"]).endswith(f".{service}")
