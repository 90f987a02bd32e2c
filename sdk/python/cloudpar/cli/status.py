"""`cloudpar status`: the state of a deployment, from AWS."""

import time
from typing import Any

import click
import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from cloudpar._formatting.quantity import quantity
from cloudpar.deployment import fleet, machine_image, prices, stack, template
from cloudpar.deployment.aws import Aws

from .access import json_option
from .deploy import environment_option, region_option
from .deploy_tables import fleet_table
from .presentation import console, print_json


class Queue(msgspec.Struct, frozen=True):
    """The numbers of chunks that wait, of chunks that workers have, and of chunks in the dead-letter queue."""

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
@click.option("--watch", is_flag=True, help="Show the state again and again, until Ctrl-C.")
@click.option(
    "--interval", "interval_s", type=click.FloatRange(min=1.0), default=10.0, show_default=True,
    help="Seconds between two looks, with --watch.",
)  # fmt: skip
@json_option
def status(*, environment: str, region: str | None, watch: bool, interval_s: float, as_json: bool) -> None:
    """Show a deployment: its state, its workers, its queue, and what it costs an hour.

    With --watch and --json it prints one object a line.
    """
    aws, name = Aws(region), stack.stack_name(environment)
    found = take(aws, name)
    if not watch:
        if as_json:
            print_json(found)
        else:
            console().print(draw(found), crop=False)  # so that a command in an advice stays whole and can be copied
        return
    try:
        if as_json:
            _stream(aws, name, found, interval_s)
        else:
            _watch(aws, name, found, interval_s)
    except KeyboardInterrupt:
        return


def _stream(aws: Aws, name: str, found: Status, interval_s: float) -> None:
    while True:
        print_json(found)
        time.sleep(interval_s)
        found = take(aws, name)


def _watch(aws: Aws, name: str, found: Status, interval_s: float) -> None:
    with Live(draw(found), console=console(), auto_refresh=False, transient=True) as live:
        while True:
            time.sleep(interval_s)
            live.update(draw(take(aws, name)), refresh=True)


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
        public=template.has_network(body),
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


def draw(found: Status) -> Group:
    """Draw the state of a stack."""
    why = f" ({found.reason})" if found.reason else ""
    parts: list[RenderableType] = [
        Text.assemble((found.stack, "bold"), f" in {found.region}: {found.state}{why}"),
    ]
    if found.fix:
        parts.append(Text(f"fix       {found.fix}", no_wrap=True, overflow="ignore"))
    if found.endpoint:
        parts.append(Text(f"endpoint  {found.endpoint}"))
    if found.fleet is not None:
        parts += _fleet(found.fleet)
    if old := machine_image.advice(found.image_days, found.stack, found.region):
        parts.append(Text(f"image     {old}", no_wrap=True, overflow="ignore"))
    if found.queue is not None:
        queue = found.queue
        parts.append(
            Text(f"queue     chunks: {queue.waiting:,} wait, {queue.running:,} with workers, {queue.lost:,} lost")
        )
    if found.usd_hour is not None:
        parts += _costs(found.usd_hour)
    return Group(*parts)


def _fleet(workers: fleet.Fleet) -> list[RenderableType]:
    there = quantity(workers.running, "instance") + (f", {workers.starting} starting" if workers.starting else "")
    parts: list[RenderableType] = [Text(f"fleet     {there}; wanted {workers.desired}, at most {workers.maximum}")]
    if workers.reason:
        parts.append(Text(f"          the newest launch failed; AWS says: {workers.reason}"))
    if workers.instances:
        parts.append(fleet_table(workers))
    return parts


def _costs(hour: prices.Hour) -> list[RenderableType]:
    parts: list[RenderableType] = [
        Text(
            f"costs     {hour.total:.4f} USD an hour: instances {hour.instances:.4f}, their volumes {hour.volumes:.4f} "
            f"and addresses {hour.addresses:.4f}, at rest {hour.idle:.4f}; calls and payloads come on top"
        )
    ]
    if hour.unknown:
        parts.append(Text(f"          without {quantity(hour.unknown, 'instance')} whose price is not known"))
    return parts
