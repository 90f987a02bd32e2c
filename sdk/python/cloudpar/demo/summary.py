"""Shows a measurement as tables, and converts it to a JSON object."""

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from cloudpar._formatting.quantity import quantity

from .measurement import PROCESSES, Measurement

POINTS = ("serialize", "retrieve", "execute", "publish", "deserialize", "await")
"""The names of the six points, in the order of Report.points_s."""

_EXPLANATIONS = (
    "1 serializing code and data (client)",
    "2 retrieving tasks (workers)",
    "3 executing tasks (executors)",
    "4 publishing results (workers)",
    "5 deserializing results (client)",
    "6 awaiting, start to last result (client)",
)


def as_json(found: Measurement) -> dict[str, Any]:
    """Return one JSON object. Its `points_s` are the times of the run with two executors."""
    two = next(run for run in found.runs if run.executors == 2)
    return {
        "tasks": found.tasks,
        "results_correct": found.results_correct,
        "sequential_s": found.sequential_s,
        "process_pool_s": found.process_pool_s,
        "runs": [
            {
                "executors": run.executors,
                "wall_s": run.wall_s,
                "speedup": found.speedup(run.wall_s),
                "efficiency": run.efficiency,
            }
            for run in found.runs
        ],
        "points_s": dict(zip(POINTS, two.report.points_s(), strict=True)),
        "cores": found.cores,
        "largest_prime": found.largest,
        "seed": found.seed,
    }


def as_tables(found: Measurement) -> Group:
    """Return the tables for people."""
    heading = (
        f"{found.tasks} factorizations of products of two primes below {found.largest:,} on {found.cores} cores; "
        f"results {'correct' if found.results_correct else 'WRONG'}"
    )
    return Group(Text(heading), _times(found), _points(found))


def _times(found: Measurement) -> Table:
    table = Table("run")
    for column in ("wall time", "speed-up", "efficiency"):
        table.add_column(column, justify="right")
    table.add_row("sequential", f"{found.sequential_s:.3f} s", "1.00", "-")
    pool_s = found.process_pool_s
    table.add_row(f"ProcessPoolExecutor({PROCESSES})", f"{pool_s:.3f} s", f"{found.speedup(pool_s):.2f}", "-")
    for run in found.runs:
        table.add_row(
            f"cloudpar, {quantity(run.executors, 'executor')}",
            f"{run.wall_s:.3f} s", f"{found.speedup(run.wall_s):.2f}", f"{run.efficiency:.3f}",
        )  # fmt: skip
    return table


def _points(found: Measurement) -> Table:
    table = Table("measured point, sum over the tasks")
    for run in found.runs:
        table.add_column(quantity(run.executors, "executor"), justify="right")
    for number, explanation in enumerate(_EXPLANATIONS):
        table.add_row(explanation, *(f"{run.report.points_s()[number]:.4f} s" for run in found.runs))
    return table
