"""What a deployment needs, looked at before anything is made; each finding names its mend."""

import re
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from cloudpar.errors import ConfigurationError

from .aws import Aws
from .failures import AwsMissing, AwsRefused, DeploymentError
from .prices import VCPUS
from .project import CDK, NODE, Project

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = 6
SPOT_QUOTA = ("ec2", "L-34B43A08")
"""All standard spot instance requests, in vCPUs."""

CONCURRENCY_QUOTA = ("lambda", "L-B99A9384")
CONCURRENCY = 100
"""Below this, workers are throttled when many publish at once: everything completes, only slower."""

State = Literal["ok", "warning", "missing", "failed"]


class Check(msgspec.Struct, frozen=True):
    """One finding.

    Attributes:
        name: What was looked at.
        state: "warning": it works, but not as well; "missing": this command can make it; "failed": not like this.
        found: What is there.
        mend: What to do about it.
    """

    name: str
    state: State
    found: str
    mend: str = ""


class Plan(msgspec.Struct, frozen=True):
    """What is to be deployed, as far as the checks care."""

    max_instances: int
    instance_size: str
    builds_image: bool
    builds_functions: bool

    @property
    def instance_vcpus(self) -> int:
        """Of one instance."""
        return VCPUS.get(self.instance_size, max(VCPUS.values()))


class Findings(msgspec.Struct, frozen=True):
    """All checks, and the account that they were made in."""

    account: str
    region: str
    checks: list[Check]

    def missing(self, name: str) -> bool:
        """Whether that is to be made first."""
        return any(each.name == name and each.state == "missing" for each in self.checks)

    def require(self) -> None:
        """Refuse to go on if anything failed.

        Raises:
            DeploymentError: The text names each mend.
        """
        failed = [f"{each.name}: {each.found}: {each.mend}" for each in self.checks if each.state == "failed"]
        if failed:
            raise DeploymentError("; ".join(failed))


def check(aws: Aws, project: Project, plan: Plan) -> Findings:
    """Look at everything. Whoever AWS does not know gets no further than that.

    Raises:
        DeploymentError: The credentials are no good.
    """
    caller = aws.call("sts", "get_caller_identity")
    account = str(caller["Account"])
    first = [
        Check("credentials", "ok", str(caller["Arn"])),
        Check("region", "ok", f"{aws.region}, account {account}"),
    ]
    checks = [*first, *_tools(project, plan), _bootstrap(aws), _spot(aws, plan), _concurrency(aws)]
    return Findings(account, aws.region, checks)


def _tools(project: Project, plan: Plan) -> Iterator[Check]:
    yield _node(project)
    if project.has_packages():
        yield Check("CDK app", "ok", f"{project.root}, packages installed")
    else:
        yield Check("CDK app", "failed", "its packages are not installed", f"run `npm ci` in {project.root}")
    yield _cdk(project)
    if plan.builds_functions:
        yield _answers(project, "uv", [project.uv() or "uv", "--version"], "install uv: `pip install uv`")
    if plan.builds_image:
        mend = "start Docker, which builds the worker's image, or give an image: --set workerImage=REGISTRY/NAME:TAG"
        yield _answers(project, "docker", ["docker", "version", "--format", "Docker {{.Server.Version}}"], mend)


def _node(project: Project) -> Check:
    answer = project.answer(["node", "--version"])
    mend = f"install Node.js {NODE} or newer, and have `node` on the PATH"
    if answer is None:
        return Check("node", "failed", "there is no Node.js", mend)
    major = re.match(r"v(\d+)", answer)
    if major is None or int(major[1]) < NODE:
        return Check("node", "failed", f"Node.js {answer} is too old", mend)
    return Check("node", "ok", f"Node.js {answer}")


def _cdk(project: Project) -> Check:
    command = project.cdk()
    if command[0] != "npx":
        return Check("cdk", "ok", f"CDK CLI {CDK}")
    if project.tool("npx") is None:
        return Check("cdk", "failed", "neither CDK CLI nor npx is there", "install Node.js with npm, then run `npm ci`")
    return Check("cdk", "ok", f"CDK CLI {CDK}, which npx downloads")


def _answers(project: Project, name: str, command: list[str], mend: str) -> Check:
    answer = project.answer(command)
    return Check(name, "failed", f"{name} does not answer", mend) if answer is None else Check(name, "ok", answer)


def _bootstrap(aws: Aws) -> Check:
    mend = f"`cdk bootstrap` makes it, which deploy offers (a stack CDKToolkit in {aws.region})"
    try:
        found = aws.call("ssm", "get_parameter", Name=BOOTSTRAP_PARAMETER)["Parameter"]["Value"]
    except AwsMissing:
        return Check("bootstrap", "missing", "the CDK was never used in this account and region", mend)
    except AwsRefused as error:
        return Check("bootstrap", "failed", "cannot be looked up", str(error))
    if int(found) < BOOTSTRAP_VERSION:
        return Check("bootstrap", "missing", f"version {found} is too old", mend)
    return Check("bootstrap", "ok", f"version {found}")


def _spot(aws: Aws, plan: Plan) -> Check:
    wanted = plan.max_instances * plan.instance_vcpus

    def judge(limit: float) -> Check:
        text = f"{limit:g} spot vCPUs"
        if limit >= wanted:
            return Check("spot quota", "ok", text)
        mend = f"raise it: `{raise_command(SPOT_QUOTA, wanted, aws.region)}`"
        if limit >= plan.instance_vcpus:
            fit = int(limit // plan.instance_vcpus)
            found = f"{text}: room for {fit} of {plan.max_instances} instances"
            return Check("spot quota", "warning", found, mend)
        return Check("spot quota", "failed", f"{text}: no instance of size {plan.instance_size} can start", mend)

    return _quota(aws, "spot quota", SPOT_QUOTA, judge)


def _concurrency(aws: Aws) -> Check:
    def judge(limit: float) -> Check:
        text = f"{limit:g} concurrent calls"
        if limit >= CONCURRENCY:
            return Check("Lambda quota", "ok", text)
        mend = f"raise it: `{raise_command(CONCURRENCY_QUOTA, 1000, aws.region)}`"
        return Check("Lambda quota", "warning", f"{text}: works, but slower with many workers", mend)

    return _quota(aws, "Lambda quota", CONCURRENCY_QUOTA, judge)


def _quota(aws: Aws, name: str, quota: tuple[str, str], judge: Callable[[float], Check]) -> Check:
    service, code = quota
    try:
        found = aws.call("service-quotas", "get_service_quota", ServiceCode=service, QuotaCode=code)
    except AwsRefused as error:
        return Check(name, "warning", "could not be looked up", str(error))
    return judge(float(found["Quota"]["Value"]))


def raise_command(quota: tuple[str, str], wanted: int, region: str) -> str:
    """The command that asks AWS for a higher limit.

    >>> raise_command(("ec2", "L-34B43A08"), 16, "us-east-1")[:53]
    'aws service-quotas request-service-quota-increase --s'
    """
    service, code = quota
    return (
        f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} "
        f"--desired-value {wanted} --region {region}"
    )


def read_plan(environment: str, settings: dict[str, str]) -> Plan:
    """What the checks must know of the settings; infra/lib/environments.ts has the defaults.

    Raises:
        ConfigurationError: maxInstances is no number.
    """
    given = settings.get("maxInstances", "4")
    if not given.isdecimal() or int(given) < 1:
        raise ConfigurationError(f"maxInstances={given} is no number of instances: write --set maxInstances=4")
    return Plan(
        max_instances=int(given),
        instance_size=settings.get("instanceSize", "large" if environment == "dev" else "xlarge"),
        builds_image="workerImage" not in settings,
        builds_functions="bundle" not in settings,
    )
