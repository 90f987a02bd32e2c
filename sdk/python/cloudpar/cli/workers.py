"""`cloudpar workers`: the connected workers, and what they cannot run."""

from typing import Unpack

import click
from rich.table import Table

from cloudpar._formatting.quantity import quantity
from cloudpar_protocol import routes
from cloudpar_protocol.errors import CloudparError, NotFound
from cloudpar_protocol.fleet_messages import ConnectedWorker, ListWorkers, ListWorkersReply

from . import set_aside
from .access import json_option
from .master import Master, Operator, as_operator, of_operator
from .presentation import age, console, print_json, words


@click.command()
@as_operator
@json_option
def workers(*, as_json: bool, **operator: Unpack[Operator]) -> None:
    """List the connected workers, and the packages that each is set aside for (needs the admin token, or --stack)."""
    master = of_operator(operator)
    listed = ask(master)
    if as_json:
        print_json(listed)
        return
    out = console()
    if not listed.workers:
        out.print("No worker is connected: start one by `cloudpar worker`.", markup=False)
        return
    executors = sum(each.executors for each in listed.workers)
    there = f"{quantity(len(listed.workers), 'worker')}, {quantity(executors, 'executor')}"
    out.print(f"{master.endpoint}   {there}", style="bold", markup=False)
    out.print(worker_table(listed.workers, listed.now))
    lines = list(set_aside.of_workers(listed.workers))
    if lines:
        out.print("\nSet aside for packages that they cannot run", style="italic")
    for line in lines:
        out.print(line)


def ask(master: Master) -> ListWorkersReply:
    """Ask the master for its workers.

    Raises:
        CloudparError: The master's release cannot list workers, or the master refuses the request or does not answer.
    """
    try:
        found: ListWorkersReply = master.call(routes.LIST_WORKERS, ListWorkers())
    except NotFound:
        raise CloudparError(
            f"the master at {master.endpoint} is of an earlier release, which cannot list its workers: update it, by "
            "starting it with this release or by `cloudpar deploy`"
        ) from None
    return found


def worker_table(listed: list[ConnectedWorker], now: float) -> Table:
    """Make the table of workers, at most 80 columns wide."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("worker", no_wrap=True)
    table.add_column("host", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("executors", justify="right", no_wrap=True)
    table.add_column("Python", overflow="fold", max_width=22)
    table.add_column("seen", justify="right", no_wrap=True)
    for each in listed:
        table.add_row(
            words(each.worker_id[: set_aside.ID_CHARS]), words(each.host) or "-", str(each.executors or "?"),
            words(", ".join(each.pythons)) or "-", f"{age(each.seen_at, now)} ago",
        )  # fmt: skip
    return table
