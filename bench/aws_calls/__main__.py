"""`python -m bench.aws_calls` counts what packages cost on AWS, on the stand-in for AWS that the tests use."""

import sys

import click
import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from cloudpar.deployment import prices

from .abuse import abuses
from .bill import EXAMPLE, LINES, Bill
from .example import shown
from .idle import AGENTS as IDLE_AGENTS
from .idle import count_idle
from .package import EXECUTORS, Load, count_package

LOADS = [Load(tasks, task_us) for task_us in (1_000, 1_000_000) for tasks in (1, 100, 10_000, 1_000_000)]
LOADS.append(EXAMPLE)
AT_REST = prices.Shape(alarm_metrics=4)
MOST_AT_REST_USD = 1.00


@click.command()
@click.option(
    "--tasks",
    type=int,
    multiple=True,
    help="Only packages of this many tasks; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--abuse", "only_abuse", is_flag=True, help="Only the dearest requests that a token permits.")
def main(*, tasks: tuple[int, ...], as_json: bool, only_abuse: bool) -> None:
    """Count, print, and end with exit code 1 if a goal is missed."""
    if only_abuse:
        found = abuses()
        for each in found:
            click.echo(f"{each.name}: {each.usd * 1e6:.1f} USD a million")
        sys.exit(any(each.too_dear for each in found))
    loads = [load for load in LOADS if not tasks or load.tasks in tasks]
    console = Console(stderr=True)
    bills: list[Bill] = []
    with Progress(console=console, transient=True) as progress:
        for load in loads:
            name = progress.add_task(f"{load.tasks:,} of {load.task_us // 1000} ms", total=load.tasks)
            counted = count_package(load, lambda done, name=name: progress.update(name, completed=done))  # type: ignore[misc]
            bills.append(Bill(load, counted))
    idle = count_idle()
    if as_json:
        click.echo(msgspec.json.encode({"packages": [bill.as_object() for bill in bills], "idle": idle.as_object()}))
    else:
        for bill in bills:
            Console().print(as_table(bill))
            if bill.load == EXAMPLE:
                click.echo("\n".join(f"| {' | '.join(cells)} |" for cells in shown(bill)))
        Console().print(f"{IDLE_AGENTS} idle agents: {idle.requests_per_s:.1f} requests/s together")
        Console().print(f"a new package gets its first lease after {idle.start_s:.2f} s")
        Console().print(at_rest())
    missed = [text for bill in bills for text in bill.missed()] + idle.missed
    if (rest := prices.total(prices.idle(AT_REST))) > MOST_AT_REST_USD:
        missed.append(f"at rest: {rest:.2f} USD a month, and at most {MOST_AT_REST_USD:.2f} are wanted")
    for text in missed:
        console.print(f"[bold red]not ok[/] {text}")
    sys.exit(1 if missed else 0)


def at_rest() -> Table:
    """Make a table of what a deployment with alarms costs in a month without clients and instances."""
    lines = prices.idle(AT_REST)
    table = Table("at rest", "how it comes about", "USD a month")
    for line in lines:
        table.add_row(line.name, line.why, f"{line.usd:.3f}")
    table.add_row("Total", "", f"{prices.total(lines):.2f}")
    return table


def as_table(bill: Bill) -> Table:
    load = bill.load
    executors = load.agents * EXECUTORS
    title = f"{load.tasks:,} tasks of {load.task_us // 1000} ms, {executors} executors on {load.agents} agents"
    table = Table("", title=title)
    for line in LINES:
        table.add_column(line, justify="right")
    for purpose, figures in bill.by_purpose().items():
        table.add_row(purpose, *(f"{figures[line]:,.7g}" for line in LINES))
    table.caption = (
        f"{bill.seconds:,.1f} simulated s, {bill.chunks:,} chunks, {bill.requests_of_chunk:.2f} requests a chunk, "
        f"{bill.by_purpose()['package']['USD'] / load.tasks * 1e6:,.4f} USD for a million such tasks"
    )
    return table


if __name__ == "__main__":
    main()
