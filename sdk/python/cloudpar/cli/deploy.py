"""`cloudpar deploy`: a pool in one's own AWS account, for people who never used the CDK."""

import getpass
import hashlib
import secrets
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from cloudpar.configuration import profile_path
from cloudpar.deployment import checks, plan, prices, profile, stack, template
from cloudpar.deployment.administration import Administration
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.cdk import Cdk
from cloudpar.deployment.check import Check
from cloudpar.deployment.failures import DeploymentError
from cloudpar.deployment.profile import Profile
from cloudpar.deployment.project import find_project
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import CreateAccount
from cloudpar_protocol.errors import CloudparError

from . import deploy_tables
from .access import json_option
from .presentation import print_json
from .question import ask

FIRST_MAP_S = 900.0
"""How long the first map may take, in which the first worker starts. A spot instance takes one to three minutes."""

NUMBERS = 10


class Deployed(msgspec.Struct, frozen=True):
    """What --json prints."""

    stack: str
    region: str
    account: str
    endpoint: str
    checks: list[Check]
    idle: list[prices.Line]
    idle_usd_month: float
    outputs: dict[str, str]
    profile: str
    first_map_s: float | None


def region_option(command: click.decorators.FC) -> click.decorators.FC:
    """The option of commands that talk to AWS."""
    return click.option("--region", help="AWS region.  [default: AWS_REGION, or the AWS profile's]")(command)


def environment_option(command: click.decorators.FC) -> click.decorators.FC:
    """The option that names the stack."""
    return click.option(
        "--env", "environment", type=click.Choice(stack.ENVIRONMENTS), default="dev", show_default=True,
        help="Which of the deployments of this account and region.",
    )(command)  # fmt: skip


@click.command()
@environment_option
@region_option
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of infra/lib/settings.ts; may be repeated.",
)
@click.option(
    "--project", "folder", type=click.Path(path_type=Path, file_okay=False),
    help="The checkout of Cloud Parallelizer.  [default: where you are]",
)  # fmt: skip
@click.option("--account", "name", help="Name of the first account.  [default: your own]")
@click.option("--hours", type=click.FloatRange(min=0), default=10.0, show_default=True, help="Its compute time.")
@click.option("--first-map/--no-first-map", "wants_map", default=True, help="Finish with a map on the new pool.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@json_option
def deploy(
    *, environment: str, region: str | None, settings: tuple[str, ...], folder: Path | None, name: str | None,
    hours: float, wants_map: bool, yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make or update a pool in your AWS account: checks, prices, the CDK, the first account, the first map."""
    project, aws = find_project(folder), Aws(region)
    target = stack.stack_name(environment)
    findings = checks.check(aws, project, plan.read_plan(environment, _read_settings(settings)))
    deploy_tables.show(deploy_tables.checks_table(findings.checks))
    findings.require()
    there = stack.find(aws, target)
    if there is not None and there.failed:
        there.refuse_protected(aws.region)  # the CDK deletes it first
    cdk = Cdk(project, aws.region, [f"env={environment}", *settings, *findings.settings], _say)
    with tempfile.TemporaryDirectory(prefix="cloudpar-deploy-") as made:
        assembly, outputs_path = Path(made) / "assembly", Path(made) / "outputs.json"
        cdk.bundle()
        body = cdk.synthesize(target, assembly)
        idle = prices.idle(template.shape(body))
        _present(body, idle, target, aws.region, there)
        if findings.missing("bootstrap"):
            ask("Bootstrap the CDK in this account and region first?", yes=yes)
            cdk.bootstrap(findings.account, aws.region)
        ask(f"{'Update' if there and not there.failed else 'Create'} {target}?", yes=yes)
        outputs = cdk.deploy(target, assembly, outputs_path)
    path = _first_account(aws, stack.get(aws, target), name, hours, yes=yes)
    took_s = _first_map(Profile(outputs["Endpoint"], _token()), show=not as_json) if wants_map else None
    if as_json:
        print_json(
            Deployed(
                stack=target, region=aws.region, account=findings.account, endpoint=outputs["Endpoint"],
                checks=findings.checks, idle=idle, idle_usd_month=round(prices.total(idle), 2), outputs=outputs,
                profile=str(path), first_map_s=took_s,
            )
        )  # fmt: skip
        return
    click.echo(_finished(target, outputs["Endpoint"], path, took_s, environment))


def _read_settings(settings: Sequence[str]) -> dict[str, str]:
    for each in settings:
        known, separator, _ = each.partition("=")
        if not (known and separator):
            raise click.BadParameter(f"{each!r}: write NAME=VALUE, as in maxInstances=8", param_hint="--set")
        if known == "env":
            raise click.BadParameter("the environment is named by --env", param_hint="--set")
    return dict(each.split("=", 1) for each in settings)


def _present(
    body: dict[str, object], idle: list[prices.Line], target: str, region: str, there: stack.Stack | None
) -> None:
    known = "new" if there is None else f"{'anew' if there.failed else 'update'} ({there.state} now)"
    title = f"{target} in {region}: {known}"
    deploy_tables.show(deploy_tables.made_table(template.made(body), title))
    deploy_tables.show(deploy_tables.idle_table(idle))


def _say(line: str) -> None:
    click.echo(line, err=True)


def _first_account(aws: Aws, made: stack.Stack, name: str | None, hours: float, *, yes: bool) -> Path:
    """An account whose token is in the profile file; an earlier deployment may have left one."""
    administration = Administration(aws, made)
    there = profile.read()
    path = profile_path()
    if there is not None and there.endpoint == administration.endpoint:
        return path
    spare = profile.kept(administration.endpoint)
    if there is not None:
        try:
            ask(f"{path} names {there.endpoint}; keep that as {path.name}.old and name {made.name} there?", yes=yes)
        except (click.Abort, click.UsageError):
            create = f"cloudpar account create NAME --hours {hours:g} --stack {made.name}"
            _say(f"{path} stays. Of {made.name}: {f'CLOUDPAR_PROFILE={spare}' if spare else create}")
            raise
    if spare is not None:
        _say(f"{spare} had your token of {made.name} already, and is {path} again")
        return profile.take_back(spare)
    # Made here: AWS and its logs see nothing but the hash.
    token = secrets.token_urlsafe(32)
    request = CreateAccount(
        idempotency_key=secrets.token_urlsafe(16), name=name or _own_name(),
        token_hash=hashlib.sha256(token.encode()).hexdigest(), quota_us=round(hours * 3.6e9),
    )  # fmt: skip
    administration.call(routes.CREATE_ACCOUNT, request)
    return profile.write(Profile(administration.endpoint, token))


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return "first"


def _token() -> str:
    written = profile.read()
    if written is None:
        raise DeploymentError(f"{profile_path()} cannot be read any more: run `cloudpar deploy` again")
    return written.token


def _first_map(user: Profile, *, show: bool) -> float:
    """Squares of a few numbers, from start to result; the pool shows how its workers start."""
    from cloudpar.pool import Pool  # noqa: PLC0415  # costs what the checks before need not pay

    click.echo("The first map; the first worker takes one to three minutes to start.", err=True)
    began = time.monotonic()
    with Pool(user.endpoint, user.token, progress=show) as pool:
        results = pool.map(pow, range(NUMBERS), [2] * NUMBERS, timeout=FIRST_MAP_S)
        try:
            squares = list(results)
        except TimeoutError:
            results.cancel()
            raise DeploymentError(
                f"the pool is deployed, but its first map has no result after {FIRST_MAP_S / 60:.0f} min: `cloudpar "
                "status` shows what AWS says about the workers"
            ) from None
    if squares != [number**2 for number in range(NUMBERS)]:
        raise CloudparError(
            f"the first map has wrong results, {squares}: this is a fault of cloudpar, please report it"
        )
    return round(time.monotonic() - began, 1)


def _finished(target: str, endpoint: str, path: Path, took_s: float | None, environment: str) -> str:
    mapped = "" if took_s is None else f"The first map took {took_s:.0f} s; the next finds its worker there.\n"
    return (
        f"{mapped}{target} is at {endpoint}; {path} has your token, so that this works:\n\n"
        "  from cloudpar import Pool\n  with Pool() as pool:\n      print(sum(pool.map(abs, range(1000))))\n\n"
        f"What it does and costs: cloudpar status --env {environment}; the end of it: cloudpar destroy --env "
        f"{environment}"
    )
