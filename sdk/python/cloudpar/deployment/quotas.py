"""Checks AWS's quotas for a deployment: vCPUs, concurrent Lambda calls and VPCs. New AWS accounts have small ones."""

from collections.abc import Iterator
from functools import partial

from cloudpar._formatting.quantity import quantity

from .aws import Aws
from .check import Check, unless_refused
from .failures import AwsMissing
from .plan import Plan

Quota = tuple[str, str]
"""AWS's codes of a service and of one of its quotas."""

SPOT_QUOTA: Quota = ("ec2", "L-34B43A08")
"""The AWS quota "All standard spot instance requests", in vCPUs."""

ON_DEMAND_QUOTA: Quota = ("ec2", "L-1216C47A")
"""The AWS quota "Running on-demand standard instances", in vCPUs."""

VPC_QUOTA: Quota = ("vpc", "L-F678F1CE")
"""The AWS quota "VPCs per region". A region permits as many internet gateways as VPCs."""

CONCURRENCY_QUOTA: Quota = ("lambda", "L-B99A9384")
CONCURRENCY = 100
"""If the AWS account may have fewer concurrent Lambda calls than this, AWS may throttle workers that publish at the
same time. The pool is then slower, but still correct.
"""


def check(aws: Aws, plan: Plan) -> Iterator[Check]:
    """Check each quota that a deployment may exceed."""
    for kind, quota, count in (("spot", SPOT_QUOTA, plan.spot), ("on-demand", ON_DEMAND_QUOTA, plan.on_demand)):
        if count:
            yield unless_refused(f"{kind} quota", partial(_vcpus, aws, plan, kind, quota, count))
    yield unless_refused("Lambda quota", partial(_concurrency, aws))
    if plan.vpc is None:
        yield unless_refused("VPC quota", partial(_vpcs, aws, plan))


def _vcpus(aws: Aws, plan: Plan, kind: str, quota: Quota, count: int) -> Check:
    name, wanted, limit = f"{kind} quota", count * plan.instance_vcpus, _limit(aws, quota)
    text = f"{limit:g} {kind} vCPUs"
    if limit >= wanted:
        return Check(name, "ok", text)
    fix = f"raise it: `{raise_command(quota, wanted, aws.region)}`"
    if limit >= plan.instance_vcpus:
        fit = int(limit // plan.instance_vcpus)
        return Check(name, "warning", f"{text}: room for {fit} of {count} instances", fix)
    return Check(name, "failed", f"{text}: no instance of size {plan.instance_size} can start", fix)


def _concurrency(aws: Aws) -> Check:
    limit = _limit(aws, CONCURRENCY_QUOTA)
    text = f"{limit:g} concurrent calls"
    if limit >= CONCURRENCY:
        return Check("Lambda quota", "ok", text)
    fix = f"raise it: `{raise_command(CONCURRENCY_QUOTA, 1000, aws.region)}`"
    return Check("Lambda quota", "warning", f"{text}: works, but slower with many workers", fix)


def _vpcs(aws: Aws, plan: Plan) -> Check:
    """Check that the stack can create its VPC. If it cannot, CloudFormation would fail and roll back."""
    name = "VPC quota"
    vpcs = list(aws.pages("ec2", "describe_vpcs", "Vpcs"))
    # CloudFormation marks each VPC that it makes with a tag that names the stack. A stack that already has its VPC
    # needs no other one.
    if any(_made_by(each) == plan.stack for each in vpcs):
        return Check(name, "ok", f"{plan.stack} has its VPC")
    limit = _limit(aws, VPC_QUOTA)
    text = f"{quantity(len(vpcs), 'VPC')} of {limit:g} in {aws.region}"
    if len(vpcs) < limit:
        return Check(name, "ok", text)
    fix = f"delete one that is not used, or raise it: `{raise_command(VPC_QUOTA, len(vpcs) + 1, aws.region)}`"
    return Check(name, "failed", f"{text}: no room for one more", fix)


def _made_by(vpc: dict[str, list[dict[str, str]]]) -> str | None:
    tags = {each["Key"]: each["Value"] for each in vpc.get("Tags", [])}
    return tags.get("aws:cloudformation:stack-name")


def _limit(aws: Aws, quota: Quota) -> float:
    which = dict(zip(("ServiceCode", "QuotaCode"), quota, strict=True))
    try:
        found = aws.call("service-quotas", "get_service_quota", **which)
    except AwsMissing:  # this account still has the default
        found = aws.call("service-quotas", "get_aws_default_service_quota", **which)
    return float(found["Quota"]["Value"])


def raise_command(quota: Quota, wanted: int, region: str) -> str:
    """Return the command that asks AWS for a higher limit.

    >>> raise_command(("ec2", "L-34B43A08"), 16, "us-east-1").partition(" --quota-code ")[2]
    'L-34B43A08 --desired-value 16 --region us-east-1'
    """
    service, code = quota
    return (
        f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} "
        f"--desired-value {wanted} --region {region}"
    )
