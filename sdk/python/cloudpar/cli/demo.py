"""`cloudpar demo`: measures factorizations on this machine."""

import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cloudpar_protocol.errors import CloudparError

from .access import json_option
from .presentation import console, print_json

SEED = 2017
REFRESH_S = 0.5
"""The least time between two drawings of the bar, in seconds. More frequent drawings would disturb the measurement."""


@click.command()
@click.option("--tasks", type=click.IntRange(min=1), default=500, show_default=True, help="Factorizations.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="The best one counts.")
@click.option("--largest", type=click.IntRange(min=100), help="Largest prime.  [default: 10 s for all tasks here]")
@click.option("--plot", "plot_path", type=click.Path(path_type=Path, dir_okay=False), help="Save a plot there.")
@json_option
def demo(tasks: int, repeats: int, largest: int | None, plot_path: Path | None, as_json: bool) -> None:
    """Factorize products of primes: sequentially, on processes, and on 1, 2 and 4 executors."""
    from cloudpar.demo import factorization, measurement, plot, summary

    if plot_path is not None:
        plot.check_plotting()
    size = largest or factorization.calibrate(tasks)
    numbers = factorization.problem(tasks, size, SEED)
    steps = tasks * repeats * (2 + len(measurement.EXECUTORS))
    with DemoBar(steps) as bar:
        found = measurement.measure(numbers, repeats, bar.advance, largest=size, seed=SEED)
    if plot_path is not None:
        plot.save(found, plot_path)
    if as_json:
        print_json(summary.as_json(found))
    else:
        out = console()
        out.print(summary.as_tables(found))
        if plot_path is not None:
            out.print(f"The plot is in {plot_path}")
    if not found.results_correct:
        raise CloudparError("some results are wrong: this is a fault of cloudpar, please report it with the output")


class DemoBar(Progress):
    """A progress bar on standard error. The measuring thread draws it, at most once in REFRESH_S seconds."""

    def __init__(self, steps: int) -> None:
        super().__init__(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=Console(stderr=True), auto_refresh=False, transient=True,
        )  # fmt: skip
        self._id = self.add_task("warming up", total=steps)
        self._done, self._drawn = 0, 0.0

    def advance(self, name: str) -> None:  # type: ignore[override]
        """Count one finished task of the named run."""
        self._done += 1
        now = time.monotonic()
        if now - self._drawn >= REFRESH_S:
            self._drawn = now
            self.update(self._id, completed=self._done, description=f"{name:24}", refresh=True)
