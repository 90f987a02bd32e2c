"""`cloudpar deploy`: a pool in your own AWS account, without knowledge of the CDK."""

import tempfile
from pathlib import Path

import click

from cloudpar.deployment import checks, image_build, plan, prices, profile, protection, refresh, stack, template
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.cdk import Cdk
from cloudpar.deployment.project import find_project
from cloudpar.deployment.settings import Request, parse, read_file
from cloudpar.deployment.update import Update

from . import alarm_recipient, deploy_tables, first_use, spans
from .access import json_option
from .presentation import print_json
from .question import ask

region_option = click.option("--region", help="AWS region.  [default: AWS_REGION, or the AWS profile's]")
environment_option = click.option(
    "--env", "environment", type=click.Choice(stack.ENVIRONMENTS), default="dev", show_default=True,
    help="Which of the deployments of this account and region.",
)  # fmt: skip


@click.command()
@environment_option
@region_option
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE",
    help="A setting of infra/lib/settings.ts; may be repeated. Those that were set before stay.",
)  # fmt: skip
@click.option(
    "--unset", "unset", multiple=True, metavar="NAME", help="Return a setting to its default; may be repeated."
)
@click.option(
    "--config", "file", type=click.Path(path_type=Path, dir_okay=False),
    help="A TOML file with all settings. One that it lacks must be named by --unset.",
)  # fmt: skip
@click.option(
    "--project", "folder", type=click.Path(path_type=Path, file_okay=False),
    help="The checkout of Cloud Parallelizer.  [default: where you are]",
)  # fmt: skip
@click.option("--account", "name", help="Name of the first account.  [default: your own]")
@click.option(
    "--hours",
    type=click.FloatRange(0, spans.LARGEST_HOURS),
    default=10.0,
    show_default=True,
    help="Its compute time.",
)
@click.option("--first-map/--no-first-map", "wants_map", default=True, help="Finish with a map on the new pool.")
@click.option("--activate", is_flag=True, help="Have programs use this pool, even if their profile names another.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@json_option
def deploy(
    *, environment: str, region: str | None, settings: tuple[str, ...], unset: tuple[str, ...], file: Path | None,
    folder: Path | None, name: str | None, hours: float, wants_map: bool, activate: bool, yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Create or update a pool in your AWS account. First show what it needs and what it costs, and ask."""
    request = Request(read_file(file) if file else None, parse(settings), frozenset(unset))
    project, aws = find_project(folder), Aws(region)
    update = alarm_recipient.settle(Update.plan(aws, environment, request), request, yes=yes)
    update, said = image_build.settle(update, request, plan.read_plan(environment, update.settings), project)
    if said:
        _say(said)
    findings = checks.check(aws, project, plan.read_plan(environment, update.settings))
    deploy_tables.show(deploy_tables.checks_table(findings.checks))
    findings.require()
    cdk = Cdk(project, aws.region, [*update.context(environment, request), *findings.settings], _say)
    with tempfile.TemporaryDirectory(prefix="cloudpar-deploy-") as made:
        assembly = Path(made) / "assembly"
        cdk.bundle()
        body = cdk.synthesize(update.name, assembly)
        idle = prices.idle(template.shape(body))
        _present(body, idle, update, aws.region)
        update.check(body)
        if findings.missing("bootstrap"):
            ask("Bootstrap the CDK in this account and region first?", yes=yes)
            cdk.bootstrap(findings.account, aws.region)
        ask(f"{'Create' if update.template is None else 'Update'} {update.name}?", yes=yes)
        update.execute(aws, cdk, assembly, lambda found: deploy_tables.show(deploy_tables.doomed_table(found)))
    protection.protect(aws, update.name)
    there = stack.get(aws, update.name)
    refreshed = refresh.start(aws, there.outputs["FleetGroup"]) if "FleetGroup" in there.outputs else None
    if refreshed:
        _say(refreshed)
    endpoint = there.output("Endpoint")
    if update.endpoint is not None and update.endpoint != endpoint:
        profile.follow(update.endpoint, endpoint)
        _say(f"the address of {update.name} has changed: tell it to all users and to workers outside the fleet")
    path = first_use.ensure_account(aws, there, name, hours, activate=activate)
    if wants_map and not first_use.reaches(endpoint, update.settings):
        _say("no first map: this machine does not reach the private API")
        wants_map = False
    took_s = first_use.first_map(path, show=not as_json) if wants_map else None
    if as_json:
        print_json({
            "stack": update.name, "region": aws.region, "account": findings.account,
            "endpoint": endpoint, "checks": findings.checks, "settings": update.settings,
            "changes": update.changes, "idle": idle, "idle_usd_month": round(prices.total(idle), 2),
            "outputs": there.outputs, "profile": str(path), "first_map_s": took_s,
        })  # fmt: skip
        return
    click.echo(first_use.summary(there, path, took_s, environment))


def _present(body: dict[str, object], idle: list[prices.Cost], update: Update, region: str) -> None:
    title = f"{update.name} in {region}: {update.kind}"
    deploy_tables.show(deploy_tables.made_table(template.made(body), title))
    deploy_tables.show(deploy_tables.idle_table(idle))
    deploy_tables.show(deploy_tables.settings_table(update.settings, update.changes))
    if alarm_recipient.SETTING not in update.settings:
        _say(alarm_recipient.NONE)


def _say(line: str) -> None:
    click.echo(line, err=True)
