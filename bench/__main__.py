"""`python -m bench` measures every figure that the project promises, and mostly also ProcessPoolExecutor's."""

import sys

import click
import msgspec
from rich.console import Console
from rich.progress import track
from rich.table import Table

from . import ending, factorizations, fairness, idle, memory, overhead, payload, start_up
from .figures import REPEATS, Figure, Found, measure

PARTS = [module.PART for module in (factorizations, overhead, payload, start_up, memory, fairness, ending, idle)]
NAMES = [figure.name for part in PARTS for figure in part.figures]


@click.command()
@click.option("--only", type=click.Choice(NAMES), multiple=True, help="Measure this one; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(only: tuple[str, ...], as_json: bool) -> None:
    """Measure, print, and end with exit code 1 if a target is missed."""
    wanted = set(only or NAMES)
    parts = [part for part in PARTS if wanted & {figure.name for figure in part.figures}]
    console = Console(stderr=True)
    found: list[Found] = []
    for part in track(parts, "measuring", console=console, transient=True, disable=not console.is_terminal):
        found += [each for each in measure(part) if each.figure.name in wanted]
    if as_json:
        click.echo(msgspec.json.encode({each.figure.name: as_object(each) for each in found}))
    else:
        Console().print(as_table(found))
    sys.exit(0 if all(each.ok for each in found) else 1)


def as_object(found: Found) -> dict[str, object]:
    figure = found.figure
    return {
        "what": figure.what,
        "unit": figure.unit,
        "cloudpar": found.ours,
        "process_pool": found.peer,
        "target": figure.limit,
        "at_least": figure.at_least,
        "ok": found.ok,
    }


def as_table(found: list[Found]) -> Table:
    table = Table("name", "figure", title=f"medians of {REPEATS}, ProcessPoolExecutor in turn in the same run")
    for column in ("cloudpar", "ProcessPoolExecutor", "target"):
        table.add_column(column, justify="right")
    table.add_column("")
    for each in found:
        figure = each.figure
        target = f"{'>=' if figure.at_least else '<='} {amount(figure, figure.limit)}"
        peer = "-" if each.peer is None else amount(figure, each.peer)
        verdict = "[green]ok[/]" if each.ok else "[bold red]not ok[/]"
        table.add_row(figure.name, figure.what, amount(figure, each.ours), peer, target, verdict)
    return table


def amount(figure: Figure, value: float) -> str:
    """Format a value with its unit and three significant digits."""
    return f"{value:.3g} {figure.unit}".strip()


if __name__ == "__main__":
    main()
