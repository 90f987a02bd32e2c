"""Checks the plan of the AWS account. Since July 2025, new accounts may have the free plan.

An account with the free plan may start only the few instance types that AWS calls free-tier-eligible. With other types
the stack can be created, but each start of an instance fails.
"""

from .aws import Aws
from .check import Check
from .failures import AwsMissing
from .plan import FAMILIES, Plan
from .prices import VCPUS

NAME = "account plan"

UPGRADE = "upgrade the account to the paid plan (AWS console: Billing and Cost Management)"


def has_plans(arn: str) -> bool:
    """Return whether the partition of this ARN has account plans.

    AWS's partitions for China and for governments have none.

    >>> has_plans("arn:aws:iam::123456789012:user/ada"), has_plans("arn:aws-cn:iam::123456789012:user/ada")
    (True, False)
    """
    return arn.startswith("arn:aws:")


def check(aws: Aws, plan: Plan) -> Check:
    """Check that the account may start instances of the fleet's types."""
    try:
        kind = aws.call("freetier", "get_account_plan_state").get("accountPlanType")
    except AwsMissing:
        return Check(NAME, "ok", "AWS has no record of a plan")
    if kind != "FREE":
        return Check(NAME, "ok", "paid plan")
    wanted = [{"Name": "free-tier-eligible", "Values": ["true"]}]
    pages = aws.pages("ec2", "describe_instance_types", "InstanceTypes", Filters=wanted)
    eligible = sorted(each["InstanceType"] for each in pages)
    refused = [each for each in plan.types if each not in eligible]
    if not refused:
        return Check(NAME, "ok", f"free plan, which permits {', '.join(plan.types)}")
    found = f"free plan, which permits only {', '.join(eligible)}, not {', '.join(refused)}"
    return Check(NAME, "warning" if len(refused) < len(plan.types) else "failed", found, _advice(eligible))


def _advice(eligible: list[str]) -> str:
    """Return the advice to upgrade the account, or to deploy with the smallest instance size that it may start."""
    known = {family: architecture for architecture, families in FAMILIES.items() for family in families}
    for size in VCPUS:
        families = [family for family in known if f"{family}.{size}" in eligible]
        if families:
            architectures = [each for each in FAMILIES if each in {known[family] for family in families}]
            settings = {"families": families, "architectures": architectures, "instanceSize": [size]}
            options = " ".join(f"--set {name}={','.join(values)}" for name, values in settings.items())
            return f"{UPGRADE}, or deploy with {options}"
    return UPGRADE
