"""Checks the requirements of a deployment before anything is created. Each finding says what to do about it."""

import msgspec

from . import account_plan, instance_types, network, quotas, tools
from .aws import Aws
from .check import Check, unless_refused
from .failures import AwsMissing, AwsRefused, DeploymentError
from .plan import Plan
from .project import Project

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = 6


class Findings(msgspec.Struct, frozen=True):
    """The results of all checks, the AWS account and the region that were checked, and the settings for this region."""

    account: str
    region: str
    checks: list[Check]
    settings: list[str] = []

    def missing(self, name: str) -> bool:
        """Return whether the check of this name has found that something must be created first."""
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
    account, arn = str(caller["Account"]), str(caller["Arn"])
    first = [
        Check("credentials", "ok", arn),
        Check("region", "ok", f"{aws.region}, account {account}"),
    ]
    if account_plan.has_plans(arn):
        first.append(unless_refused(account_plan.NAME, lambda: account_plan.check(aws, plan)))
    types, settings = instance_types.check(aws, plan)
    given = network.check(aws, plan) if plan.vpc else ()
    checks = [*first, *tools.check(project, plan), _bootstrap(aws), *given, *types, *quotas.check(aws, plan)]
    return Findings(account, aws.region, checks, settings)


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
