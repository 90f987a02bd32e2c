"""`python -m bench.aws_model` simulates large deployments on AWS, and compares their peaks with AWS's limits."""

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from .limits import LIMITS
from .plots import draw
from .scenario import Figures, Load, Run

S = 1_000_000
LOADS = (
    Load("10,000 executors, 10 s", 10_000, 16, 10 * S, packages=10, goal=0.97),
    Load("100,000 executors, 60 s", 100_000, 32, 60 * S, packages=100, seconds=600, goal=0.97),
    Load("100,000 tasks a second", 1_100, 16, S // 100, seconds=60, goal=0.9, per_s=100_000),
    Load("0 to 1,000 hosts", 16_000, 16, 60 * S, packages=16, seconds=900, boots=True),
)


@click.command()
@click.option("--only", type=click.Choice([load.name for load in LOADS]), multiple=True, help="Only these loads.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the plots into this folder.")
def main(*, only: tuple[str, ...], as_json: bool, plot: Path | None) -> None:
    """Simulate, print, and end with exit code 1 if a goal is missed."""
    console = Console(stderr=True)
    found: list[Figures] = []
    with Progress(console=console, transient=True) as progress:
        for load in LOADS:
            if not only or load.name in only:
                name = progress.add_task(load.name, total=load.tasks)
                run = Run(load, lambda done, name=name: progress.update(name, completed=done))  # type: ignore[misc]
                found.append(run.to_the_end())
    if plot is not None:
        draw(found, plot)
    if as_json:
        click.echo(msgspec.json.encode([each.as_object() for each in found]))
    else:
        Console().print(as_table(found))
        Console().print(as_limits(found))
    missed = [text for each in found for text in each.missed()]
    for text in missed:
        console.print(f"[bold red]not ok[/] {text}")
    sys.exit(1 if missed else 0)


def as_table(found: list[Figures]) -> Table:
    """Make a table of what was reached."""
    table = Table("load", "hosts", "busy", "tasks/s", "first task, s", "last host, s", "all results, s", "ideal, s")
    for each in found:
        load = each.load
        times = (f"{value:,.1f}" for value in (each.first_s, each.last_s, each.seconds))
        table.add_row(
            load.name, f"{load.hosts:,}", f"{each.busy:.1%}", f"{each.per_s:,.0f}", *times, f"{load.seconds:,}"
        )
    return table


def as_limits(found: list[Figures]) -> Table:
    """Make a table of AWS's limits. It shows how much of each limit each load used at most in a second.

    A value above the limit is bold. The last row names the limit that a larger load would reach first.
    """
    table = Table("limit", "of AWS", *(each.load.name for each in found), "to raise it")
    for limit in LIMITS:
        used = [each.peaks[limit.name] for each in found]
        cells = (f"[bold]{value:,.0f}[/]" if value > limit.most else f"{value:,.0f}" for value in used)
        table.add_row(limit.name, f"{limit.most:,} {limit.unit}", *cells, limit.raised)
    table.add_row("binds first", "", *(each.binding().name for each in found), "")
    return table


if __name__ == "__main__":
    main()
