"""Checks the requirements of a deployment before anything is created. Each finding says what to do about it."""

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from cloudpar._formatting.quantity import quantity

from . import tools
from .aws import Aws
from .check import Check
from .failures import AwsMissing, AwsRefused, DeploymentError
from .plan import FAMILIES, LEAST_ZONES, Plan
from .project import Project

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = 6
SPOT_QUOTA = ("ec2", "L-34B43A08")
"""The AWS quota "All standard spot instance requests", in vCPUs."""

ON_DEMAND_QUOTA = ("ec2", "L-1216C47A")
"""The AWS quota "Running on-demand standard instances", in vCPUs."""

CONCURRENCY_QUOTA = ("lambda", "L-B99A9384")
CONCURRENCY = 100
"""If the AWS account may have fewer concurrent Lambda calls than this, AWS may throttle workers that publish at the
same time. The pool is then slower, but still correct.
"""


class Findings(msgspec.Struct, frozen=True):
    """The results of all checks, the AWS account and the region that were checked, and the settings for this region."""

    account: str
    region: str
    checks: list[Check]
    settings: list[str] = []

    def missing(self, name: str) -> bool:
        """Whether the check of this name has found that something must be created first."""
        return any(each.name == name and each.state == "missing" for each in self.checks)

    def require(self) -> None:
        """Raise if a check has failed.

        Raises:
            DeploymentError: A check has failed. The text says what to do about each failed check.
        """
        failed = [f"{each.name}: {each.found}: {each.fix}" for each in self.checks if each.state == "failed"]
        if failed:
            raise DeploymentError("; ".join(failed))


def check(aws: Aws, project: Project, plan: Plan) -> Findings:
    """Run all checks.

    Raises:
        DeploymentError: AWS does not accept the credentials or does not answer, so nothing could be checked.
    """
    caller = aws.call("sts", "get_caller_identity")
    account = str(caller["Account"])
    first = [
        Check("credentials", "ok", str(caller["Arn"])),
        Check("region", "ok", f"{aws.region}, account {account}"),
    ]
    types, settings = _types(aws, plan)
    zones = _unless_refused("zones", lambda: _zones(aws, plan))
    quotas = [*_instances(aws, plan), _unless_refused("Lambda quota", lambda: _concurrency(aws))]
    checks = [*first, *tools.check(project, plan), _bootstrap(aws), zones, types, *quotas]
    return Findings(account, aws.region, checks, settings)


def _unless_refused(name: str, check: Callable[[], Check]) -> Check:
    """Run a check. If AWS refuses its call, the result is a warning, so that the deployment can go on."""
    try:
        return check()
    except AwsRefused as error:
        return _not_looked_up(name, error)


def _not_looked_up(name: str, error: AwsRefused) -> Check:
    return Check(name, "warning", "could not be looked up", str(error))


def _bootstrap(aws: Aws) -> Check:
    fix = f"`cdk bootstrap` makes it, which deploy offers (a stack CDKToolkit in {aws.region})"
    try:
        found = aws.call("ssm", "get_parameter", Name=BOOTSTRAP_PARAMETER)["Parameter"]["Value"]
    except AwsMissing:
        return Check("bootstrap", "missing", "the CDK was never used in this account and region", fix)
    except AwsRefused as error:
        return Check("bootstrap", "failed", "cannot be looked up", str(error))
    if int(found) < BOOTSTRAP_VERSION:
        return Check("bootstrap", "missing", f"version {found} is too old", fix)
    return Check("bootstrap", "ok", f"version {found}")


def _zones(aws: Aws, plan: Plan) -> Check:
    """Check that the region has enough availability zones; opt-in zones do not count.

    If it has too few, CloudFormation would fail later, while it creates the network.
    """
    name = "zones"
    wanted = {"zone-type": "availability-zone", "opt-in-status": "opt-in-not-required", "state": "available"}
    filters = [{"Name": key, "Values": [value]} for key, value in wanted.items()]
    found = aws.call("ec2", "describe_availability_zones", Filters=filters)["AvailabilityZones"]
    count, text = len(found), f"{quantity(len(found), 'availability zone')} in {aws.region}"
    if count >= plan.zones:
        return Check(name, "ok", text)
    fix = f"take fewer: --set zones={count}" if count >= LEAST_ZONES else "use another region"
    return Check(name, "failed", f"{text}, where {plan.zones} are wanted", fix)


def _types(aws: Aws, plan: Plan) -> tuple[Check, list[str]]:
    """Check the instance types. If the region lacks families, also return the setting that leaves them out.

    Some regions lack newer families, and AWS may refuse an Auto Scaling group that names one of them.
    """
    name, types = "instance types", [f"{family}.{plan.instance_size}" for family in plan.drawn]
    try:
        offered = set(_offered(aws, types))
    except AwsRefused as error:
        return _not_looked_up(name, error), []
    left = [family for family in plan.drawn if family in offered]
    lacking = [each for each in types if each.partition(".")[0] not in offered]
    if not lacking:
        return Check(name, "ok", ", ".join(types)), []
    found = f"{', '.join(lacking)} not offered in {aws.region}"
    bare = [each for each in plan.architectures if not any(family in left for family in FAMILIES.get(each, ()))]
    if bare:
        fix = f"nothing is left for {' and '.join(bare)}: use another region or size, or --set architectures="
        return Check(name, "failed", found, fix), []
    if plan.families:
        return Check(name, "failed", found, f"leave them out: --set families={','.join(left)}"), []
    gone = sorted(family for family in plan.drawn if family not in left)
    return Check(name, "ok", f"{found}: left out"), [f"unavailableFamilies={','.join(gone)}"]


def _offered(aws: Aws, types: list[str]) -> Iterator[str]:
    """Yield the families of the types that the region offers."""
    wanted = [{"Name": "instance-type", "Values": types}]
    key, call = "InstanceTypeOfferings", "describe_instance_type_offerings"
    for each in aws.pages("ec2", call, key, LocationType="region", Filters=wanted):
        yield each["InstanceType"].partition(".")[0]


def _instances(aws: Aws, plan: Plan) -> Iterator[Check]:
    for kind, quota, count in (("spot", SPOT_QUOTA, plan.spot), ("on-demand", ON_DEMAND_QUOTA, plan.on_demand)):
        if count:
            yield _unless_refused(f"{kind} quota", partial(_vcpus, aws, plan, kind, quota, count))


def _vcpus(aws: Aws, plan: Plan, kind: str, quota: tuple[str, str], count: int) -> Check:
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


def _limit(aws: Aws, quota: tuple[str, str]) -> float:
    which = dict(zip(("ServiceCode", "QuotaCode"), quota, strict=True))
    try:
        found = aws.call("service-quotas", "get_service_quota", **which)
    except AwsMissing:  # this account still has the default
        found = aws.call("service-quotas", "get_aws_default_service_quota", **which)
    return float(found["Quota"]["Value"])


def raise_command(quota: tuple[str, str], wanted: int, region: str) -> str:
    """The command that asks AWS for a higher limit.

    >>> raise_command(("ec2", "L-34B43A08"), 16, "us-east-1").partition(" --quota-code ")[2]
    'L-34B43A08 --desired-value 16 --region us-east-1'
    """
    service, code = quota
    return (
        f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} "
        f"--desired-value {wanted} --region {region}"
    )
