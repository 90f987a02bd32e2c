"""`python -m bench.peers` measures the pool and other libraries in turn, each in processes of its own."""

import sys
from dataclasses import replace
from itertools import product
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cloudpar_protocol import limits

from . import engines, rows
from .engines import OURS, Peer
from .machine import machine, versions
from .measurement import Failed, measure
from .outcomes import Outcome, Outcomes, as_object, left_out
from .rows import Row
from .tables import amount, tables

LARGEST_SHARED_MB: Final = limits.BLOB_BYTES // 1_000_000
"""The largest array that the pool can send: it is part of the task code, which is one blob."""


@click.command()
@click.option("--only", type=click.Choice(rows.NAMES), multiple=True, help="Measure this row; may be repeated.")
@click.option("--engines", "names", type=click.Choice(engines.NAMES), multiple=True, help="May be repeated.")
@click.option(
    "--rounds", type=click.IntRange(1), default=5, show_default=True, help="How often each engine is measured, in turn."
)
@click.option(
    "--scale", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True,
    help="For trials: a factor for the number of tasks (at least 4 remain) and the size of their arguments. "
    "--shared-mb and the number of large arguments in the row memory stay the same.",
)  # fmt: skip
@click.option(
    "--shared-mb", type=click.IntRange(1, LARGEST_SHARED_MB), default=1_000, show_default=True,
    help="The size of the array that tasks share in the row shared.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0, min_open=True), default=300.0, show_default=True,
    help="Seconds for one measurement.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(
    *,
    only: tuple[str, ...],
    names: tuple[str, ...],
    rounds: int,
    scale: float,
    shared_mb: int,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Measure and print. Exit code 1: the pool failed in at least one row of the tables."""
    chosen = [_sized(row, scale, shared_mb) for row in rows.ROWS if not only or row.name in only]
    peers = [peer for peer in engines.PEERS if not names or peer.name in names]
    outcomes = measure_all(chosen, peers, rounds, timeout_s)
    if as_json:
        settings = {"rounds": rounds, "scale": scale, "shared_mb": shared_mb, "timeout_s": timeout_s}
        choices = {peer.name: peer.choice for peer in peers}
        said = {"machine": machine(), "versions": versions(), "settings": settings, "choices": choices}
        click.echo(msgspec.json.encode(said | {"rows": as_object(outcomes, chosen)}))
    else:
        part = "" if scale == 1 else f" This is a trial with {scale:g} of the work."
        array = f" The shared array has {shared_mb:,} MB." if rows.SHARED in outcomes else ""
        print_all(outcomes, chosen, peers, f"Medians of {rounds} rounds, all engines in turn.{part}{array}")
    sys.exit(1 if any(of_row[OURS].error for of_row in outcomes.values() if OURS in of_row) else 0)


def _sized(row: Row, scale: float, shared_mb: int) -> Row:
    """Return the row with the work that the options say."""
    load = row.load.scaled(scale)
    return replace(row, load=replace(load, size_bytes=shared_mb * 1_000_000) if row.name == rows.SHARED else load)


def measure_all(chosen: list[Row], peers: list[Peer], rounds: int, timeout_s: float) -> Outcomes:
    """Measure row by row. In each round of a row, each engine is measured once; one that fails is not tried again."""
    outcomes: Outcomes = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=len(chosen) * rounds * len(peers))
        for row in chosen:
            of_row = {peer.name: Outcome(left_out=left_out(peer, row)) for peer in peers}
            outcomes[row.name] = of_row
            for number, peer in product(range(rounds), peers):
                progress.update(bar, description=f"{row.name}, round {number + 1}: {peer.name}")
                measure_one(row, peer, of_row[peer.name], timeout_s)
                progress.advance(bar)
            progress.console.print(f"{row.name}: {summary(row, of_row)}", markup=False, highlight=False)
    return outcomes


def measure_one(row: Row, peer: Peer, outcome: Outcome, timeout_s: float) -> None:
    """Measure one engine once, unless it is left out or has failed before."""
    if outcome.note:
        return
    try:
        outcome.add(measure(peer.name, row.name, row.load, timeout_s))
    except Failed as failed:
        outcome.error = str(failed)


def summary(row: Row, of_row: dict[str, Outcome]) -> str:
    """Describe a row's first figure in one line, to be read while the next row runs."""
    figure = row.figures[0]
    medians = {name: outcome.median(figure) for name, outcome in of_row.items()}
    return ", ".join(f"{name} {'-' if value is None else amount(value)}" for name, value in medians.items())


def print_all(outcomes: Outcomes, chosen: list[Row], peers: list[Peer], title: str) -> None:
    """Print the tables, the machine and the versions."""
    console = Console()
    console.print(f"{title} The best figure of a column is bold.\n")
    console.print(tables(outcomes, chosen, [peer.name for peer in peers]))
    for what, facts in (("machine", machine()), ("versions", versions())):
        console.print(f"{what}: {', '.join(f'{name} {value}' for name, value in facts.items())}", highlight=False)


if __name__ == "__main__":
    main()
