"""`python -m bench.programs` times programs on the pool, joblib and Dask, then checks how other programs behave."""

import gc
import sys
import time

import click
import msgspec
from rich.console import Console
from rich.table import Table

from . import flow, learning, numbers, tables
from .behaviour import EXPECTATIONS, Expectation
from .engines import CLOUDPAR, ENGINES, JOBLIB, Engine
from .program import Outcome, Program

PROGRAMS = (*numbers.PROGRAMS, *tables.PROGRAMS, *learning.PROGRAMS, *flow.PROGRAMS)
NAMES = [each.name for each in (*PROGRAMS, *EXPECTATIONS)]
LIMIT = 1.5
"""The pool may take at most this many times joblib's time."""


def measure(program: Program, rounds: int) -> Outcome:
    """Run the pool in turn with each of the other engines: a warm-up on both, then both in each round.

    Only two engines exist at a time: what a client of Dask keeps in memory slows everything in its process.
    """
    outcome = Outcome(program)
    if program.prepare is not None:
        program.prepare()
    for peer in program.engines[1:]:
        with ENGINES[CLOUDPAR](program.workers) as ours, ENGINES[peer](program.workers) as theirs:
            expected, result = program.run(ours), program.run(theirs)
            if result != expected:
                outcome.failures[peer] = f"{result!r} instead of {expected!r}"
            outcome.pairs[peer] = [(timed(program, ours), timed(program, theirs)) for _ in range(rounds)]
        gc.collect()
    return outcome


def timed(program: Program, engine: Engine) -> float:
    """Return the seconds that one run takes."""
    began = time.perf_counter()
    program.run(engine)
    return time.perf_counter() - began


@click.command()
@click.option("--only", type=click.Choice(NAMES), multiple=True, help="May be repeated.")
@click.option("--rounds", type=click.IntRange(1), default=5, help="Counted runs on each engine.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(only: tuple[str, ...], rounds: int, as_json: bool) -> None:
    """Measure and print.

    Exit code 1: a program takes over 1.5 times joblib's time, computes another result, or does not behave as expected.
    """
    outcomes = []
    for program in (each for each in PROGRAMS if not only or each.name in only):
        click.echo(f"{program.name}: {program.what}", err=True)
        outcomes.append(measure(program, rounds))
        click.echo(f"  {summary(outcomes[-1])}", err=True)
    if as_json:
        click.echo(msgspec.json.encode({each.program.name: each.pairs for each in outcomes}))
    elif outcomes:
        Console().print(as_table(outcomes, rounds))
    slow = [each for each in outcomes if (each.ratio(JOBLIB) or 0) > LIMIT or each.failures]
    wrong = [each for each in EXPECTATIONS if (not only or each.name in only) and not holds(each)]
    sys.exit(1 if slow or wrong else 0)


def holds(expectation: Expectation) -> bool:
    """Run a program, print one line about it, and return whether it behaves as expected."""
    try:
        verdict = f"ok {expectation.run()}"
    except Exception as error:  # noqa: BLE001 - the other programs run although one fails
        verdict = f"not ok: {error!r}"
    click.echo(f"{expectation.name}: {expectation.what}: {verdict.strip()}", err=True)
    return verdict.startswith("ok")


def summary(outcome: Outcome) -> str:
    """Describe the outcome in one line, to be read while the next program runs."""
    medians = [f"{engine} {outcome.median_s(engine):.3g} s" for engine in outcome.program.engines]
    return ", ".join([*medians, *outcome.failures.values()])


def as_table(outcomes: list[Outcome], rounds: int) -> Table:
    table = Table("name", "program", title=f"seconds: medians of {rounds} rounds, the pool in turn with each")
    for column in (*ENGINES, "/ joblib", "/ dask"):
        table.add_column(column, justify="right")
    for each in outcomes:
        medians = [each.median_s(engine) for engine in ENGINES]
        ratios = [each.ratio(engine) for engine in ENGINES if engine != CLOUDPAR]
        cells = ["-" if value is None else f"{value:.3g}" for value in (*medians, *ratios)]
        table.add_row(each.program.name, each.program.what, *cells)
        for engine, failure in each.failures.items():
            table.add_row("", f"[bold red]{engine}: {failure}[/]")
    return table


if __name__ == "__main__":
    main()
