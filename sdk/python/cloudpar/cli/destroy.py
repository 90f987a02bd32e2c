"""`cloudpar destroy`: deletes a deployment on AWS."""

import time
from collections.abc import Callable
from typing import Any

import click

from cloudpar._formatting.quantity import quantity
from cloudpar.deployment import buckets, fleet, leftovers, prices, profile, stack
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.failures import AwsMissing, DeploymentError
from cloudpar.deployment.leftovers import Leftover

from .access import json_option
from .deploy import environment_option, region_option
from .deploy_tables import leftovers_table, show
from .presentation import console, print_json
from .question import ask

LOOK_S = 5.0
ATTEMPTS = 2


@click.command()
@environment_option
@region_option
@click.option("--yes", is_flag=True, help="Ask nothing.")
@json_option
def destroy(*, environment: str, region: str | None, yes: bool, as_json: bool) -> None:
    """Delete a deployment. First show what stays and what that costs, and ask."""
    aws = Aws(region)
    there = stack.get(aws, stack.stack_name(environment))
    there.refuse_protected(aws.region)
    body, names = stack.template(aws, there.name), stack.physical_ids(aws, there.name)
    left = _left(aws, environment, body, names)
    _present(aws, there, left)
    ask(f"Delete {there.name} in {aws.region} and all in it that is not listed above?", yes=yes)
    _delete(aws, there, buckets.doomed(body, names))
    endpoint = there.outputs.get("Endpoint")
    forgotten = [str(path) for path in profile.forget(endpoint)] if endpoint else []
    usd = round(sum(each.usd or 0.0 for each in left), 2)
    if as_json:
        print_json({
            "stack": there.name, "region": aws.region, "left": left, "left_usd_month": usd,
            "profile": forgotten[0] if forgotten else None, "profiles": forgotten,
        })  # fmt: skip
        return
    console().print(f"{there.name} is deleted; what is left costs {usd:.2f} USD a month.")
    for each in forgotten:
        console().print(f"{each}, which named it, is deleted too.", soft_wrap=True)


def _left(aws: Aws, environment: str, body: dict[str, Any], names: dict[str, str]) -> list[Leftover]:
    account = str(aws.call("sts", "get_caller_identity")["Account"])
    shared = leftovers.key(aws, environment), leftovers.images(aws, account)
    stay = [*leftovers.retained(aws, body, names), *leftovers.tokens(aws, stack.stack_name(environment))]
    return [*stay, *(each for each in shared if each)]


def _present(aws: Aws, there: stack.Stack, left: list[Leftover]) -> None:
    group = there.outputs.get("FleetGroup")
    workers = fleet.read(aws, group) if group else None
    if workers is not None and workers.instances:
        show(f"{quantity(len(workers.instances), 'instance')} at work or starting; what runs there has no result.")
    if left:
        show(leftovers_table(left))
        show(f"Together {sum(each.usd or 0.0 for each in left):.2f} USD a month, as far as their sizes are known.")
    else:
        show("Nothing stays: tables, payloads, token and logs are deleted.")
    show(f"The CDK's own stack, CDKToolkit, stays as well: {prices.BUCKET_GB_USD} USD a GB and month for code.")


def _delete(aws: Aws, there: stack.Stack, doomed: list[str]) -> None:
    """Empty the stack's buckets and delete the stack. Try twice, in case a worker wrote into a bucket meanwhile.

    Raises:
        DeploymentError: Something could not be deleted, or AWS refused a request or did not answer.
    """
    events = stack.Events(aws, there.id)
    for _ in range(ATTEMPTS):
        for bucket in doomed:
            count = buckets.empty(aws, bucket)
            click.echo(f"{quantity(count, 'object')} of {bucket} deleted", err=True)
        aws.call("cloudformation", "delete_stack", StackName=there.id)
        reason = follow(aws, there, events, lambda line: click.echo(line, err=True))
        if reason is None:
            return
    raise DeploymentError(
        f"{there.name} could not be deleted: {reason or 'see the lines above'}; fix that, then run this again"
    )


def follow(aws: Aws, there: stack.Stack, events: stack.Events, say: Callable[[str], None]) -> str | None:
    """Show the stack's events until its deletion ends. Return why the deletion failed; None if the stack is deleted."""
    while True:
        now = stack.find(aws, there.id)
        try:
            for line in events.new():
                say(line)
        except AwsMissing:
            return None
        if now is None or now.state == "DELETE_COMPLETE":
            return None
        if now.state == "DELETE_FAILED":
            return now.reason
        time.sleep(LOOK_S)
