"""`cloudpar status`: the state of a deployment, from AWS."""

from typing import Any

import click
import msgspec

from cloudpar._formatting.quantity import quantity
from cloudpar.deployment import fleet, machine_image, prices, stack, template
from cloudpar.deployment.aws import Aws

from .access import json_option
from .deploy import environment_option, region_option
from .deploy_tables import fleet_table
from .presentation import console, print_json


class Queue(msgspec.Struct, frozen=True):
    """The number of chunks that wait, of chunks that workers have, and of chunks in the dead-letter queue."""

    waiting: int
    running: int
    lost: int


class Status(msgspec.Struct, frozen=True):
    """The object that --json prints. Money is in USD per hour, at list prices and current spot prices.

    Attributes:
        fix: The advice of `Stack.advice` about a stack that does not become usable by itself; None for any other stack.
            If there is advice, endpoint, queue, costs and the age of the image are None.
        image_days: The age of the machine image from which instances start, in days; None if it is unknown.
    """

    stack: str
    region: str
    state: str
    reason: str
    fix: str | None
    endpoint: str | None
    fleet: fleet.Fleet | None
    queue: Queue | None
    usd_hour: prices.Hour | None
    usd_hour_total: float | None
    image_days: int | None


@click.command()
@environment_option
@region_option
@json_option
def status(*, environment: str, region: str | None, as_json: bool) -> None:
    """Show a deployment: its state, its workers, its queue, and what it costs an hour."""
    found = take(Aws(region), stack.stack_name(environment))
    if as_json:
        print_json(found)
    else:
        _show(found)


def take(aws: Aws, name: str) -> Status:
    """Ask AWS for the state of a stack.

    Raises:
        NotFound: There is no stack of this name.
        DeploymentError: AWS refuses, or does not answer.
    """
    there = stack.get(aws, name)
    group = there.outputs.get("FleetGroup")
    workers = fleet.read(aws, group) if group else None
    fix = there.advice(aws.region)
    hour = None if fix else _hour(stack.template(aws, name), workers)
    return Status(
        stack=name, region=aws.region, state=there.state, reason=there.reason, fix=fix,
        endpoint=None if fix else there.outputs.get("Endpoint"), fleet=workers,
        queue=None if fix else _queue(aws, there),
        usd_hour=hour, usd_hour_total=round(hour.total, 4) if hour else None,
        image_days=None if fix else machine_image.age_days(aws, there),
    )  # fmt: skip


def _hour(body: dict[str, Any], workers: fleet.Fleet | None) -> prices.Hour:
    return prices.hour(
        [each.usd for each in workers.instances] if workers else [],
        sum(line.usd for line in prices.idle(template.shape(body))),
        template.volume_gib(body),
    )


def _queue(aws: Aws, there: stack.Stack) -> Queue | None:
    tasks, lost = there.outputs.get("QueueUrl"), there.outputs.get("DeadLetterQueueUrl")
    if not tasks or not lost:
        return None
    express = there.outputs.get("ExpressQueueUrl")  # stacks of 0.2.0 do not have this queue
    depths = [_depth(aws, url) for url in (tasks, express) if url]
    waiting, running = (sum(each) for each in zip(*depths, strict=True))
    return Queue(waiting, running, sum(_depth(aws, lost)))


def _depth(aws: Aws, url: str) -> tuple[int, int]:
    visible, hidden = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
    found = aws.call("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=[visible, hidden])["Attributes"]
    return int(found[visible]), int(found[hidden])


def _show(found: Status) -> None:
    out = console()
    out.print(
        f"[bold]{found.stack}[/] in {found.region}: {found.state}" + (f" ({found.reason})" if found.reason else "")
    )
    if found.fix:
        out.print(f"fix       {found.fix}", markup=False, soft_wrap=True)
    if found.endpoint:
        out.print(f"endpoint  {found.endpoint}")
    if found.fleet is not None:
        workers = found.fleet
        there = quantity(workers.running, "instance") + (f", {workers.starting} starting" if workers.starting else "")
        out.print(f"fleet     {there}; wanted {workers.desired}, at most {workers.maximum}")
        if workers.reason:
            out.print(f"          the newest launch failed; AWS says: {workers.reason}", markup=False)
        if workers.instances:
            out.print(fleet_table(workers))
    if old := machine_image.advice(found.image_days, found.stack, found.region):
        out.print(f"image     {old}", markup=False, soft_wrap=True)
    if found.queue is not None:
        queue = found.queue
        out.print(f"queue     chunks: {queue.waiting:,} wait, {queue.running:,} with workers, {queue.lost:,} lost")
    if found.usd_hour is not None:
        _show_costs(found.usd_hour)


def _show_costs(hour: prices.Hour) -> None:
    out = console()
    out.print(
        f"costs     {hour.total:.4f} USD an hour: instances {hour.instances:.4f}, their volumes {hour.volumes:.4f} "
        f"and addresses {hour.addresses:.4f}, at rest {hour.idle:.4f}; calls and payloads come on top"
    )
    if hour.unknown:
        out.print(f"          without {quantity(hour.unknown, 'instance')} whose price is not known")
