"""The rows: what is measured, and with how much work."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, replace
from importlib import import_module
from typing import Final, Literal

from .engine import Open

Unit = Literal["s", "ms", "MB", "copies", "%"]


@dataclass(frozen=True)
class Figure:
    """One number that a row measures.

    Attributes:
        name: Its name in the JSON object.
        heading: Its column in the table.
        unit: Its unit.
        more_is_better: Whether the largest number is the best one. By default it is the smallest one.
    """

    name: str
    heading: str
    unit: Unit
    more_is_better: bool = False


@dataclass(frozen=True)
class Load:
    """How much work a row is.

    Attributes:
        tasks: How many tasks.
        size_bytes: How large the argument of each task is, or the array that they share.
        task_ms: How long a task computes.
    """

    tasks: int = 0
    size_bytes: int = 0
    task_ms: int = 0

    def scaled(self, scale: float) -> "Load":
        """Return a part of the work, but at least four tasks and a byte."""
        return replace(
            self,
            tasks=max(4, round(self.tasks * scale)) if self.tasks else 0,
            size_bytes=max(1, round(self.size_bytes * scale)) if self.size_bytes else 0,
        )

    def as_arguments(self) -> list[str]:
        """Return the arguments of a command, from which `from_arguments` makes the same work."""
        return [str(value) for value in astuple(self)]

    @classmethod
    def from_arguments(cls, arguments: Iterable[str]) -> "Load":
        """Return the work that a command's arguments say."""
        return cls(*map(int, arguments))


@dataclass(frozen=True)
class Row:
    """One workload.

    Attributes:
        name: The name that `--only` takes.
        group: The table that shows it.
        what: One line for people.
        runs: Module and function in bench.peers.workloads. It is imported only in the process of a measurement.
        figures: What it measures.
        load: Its work.
        left_out: Engines that cannot run it, with the reason.
        needs_linux: Whether it reads from /proc how much memory processes have.
    """

    name: str
    group: str
    what: str
    runs: str
    figures: tuple[Figure, ...]
    load: Load = Load()
    left_out: dict[str, str] = field(default_factory=dict)
    needs_linux: bool = False

    def run(self, start: Open, load: Load) -> dict[str, float]:
        """Measure, in this process."""
        module, function = self.runs.split(":")
        workload = getattr(import_module(f"bench.peers.workloads.{module}"), function)
        figures: dict[str, float] = workload(start, load)
        return figures


def _seconds(name: str, group: str, heading: str, runs: str, *, what: str, load: Load = Load()) -> Row:
    """A row that measures only a duration."""
    return Row(name, group, what, runs, (Figure("seconds", heading, "s"),), load)


SHARED: Final = "shared"
"""The row whose array has a size of its own."""

START, NO_OPS, DATA = "start and round trip", "no-op tasks by one map, s", "data, s"
COMPUTE, MEMORY = "computing on 2 processes", "memory (PSS of all processes)"

ROWS: Final = (
    _seconds("start", START, "start, s", "overhead:start", what="from the import to the first result"),
    Row(
        "round-trip", START, "one call to its result, up to 200 times, for at most 10 s", "overhead:round_trips",
        (Figure("p50", "p50, ms", "ms"), Figure("p99", "p99, ms", "ms")), Load(200),
    ),
    _seconds("no-ops-100", NO_OPS, "100", "overhead:no_ops", what="100 no-op tasks", load=Load(100)),
    _seconds("no-ops-1000", NO_OPS, "1,000", "overhead:no_ops", what="1,000 no-op tasks", load=Load(1_000)),
    _seconds("no-ops-10000", NO_OPS, "10,000", "overhead:no_ops", what="10,000 no-op tasks", load=Load(10_000)),
    _seconds(
        "no-ops-1000000", NO_OPS, "1,000,000", "overhead:no_ops", what="1,000,000 no-op tasks", load=Load(1_000_000)
    ),
    _seconds("in", DATA, "50 MB in", "data:send", what="10 arguments of 5 MB", load=Load(10, 5_000_000)),
    _seconds("in-out", DATA, "50 MiB in, out", "data:echo", what="50 x 1 MiB in and out", load=Load(50, 1 << 20)),
    _seconds(
        "arrays", DATA, "arrays in, out", "data:double",
        what="10 NumPy arrays of 10 MB in, and such arrays out", load=Load(10, 10_000_000),
    ),
    Row(
        "factorizations", COMPUTE, "100 factorizations, 1 s on 2 processes: efficiency", "compute:factorizations",
        (Figure("efficiency", "factor, %", "%", more_is_better=True),), Load(100),
    ),
    _seconds(
        "skew", COMPUTE, "skewed, s", "compute:skewed",
        what="2,000 tasks of 1 ms, but 1 in 100 takes 100 ms; ideal 1.99 s", load=Load(2_000, task_ms=1),
    ),
    _seconds(
        "1-ms", COMPUTE, "1 ms, s", "compute:equal", what="2,000 tasks of 1 ms; ideal 1 s", load=Load(2_000, task_ms=1)
    ),
    _seconds(
        "10-ms", COMPUTE, "10 ms, s", "compute:equal", what="200 tasks of 10 ms; ideal 1 s", load=Load(200, task_ms=10)
    ),
    _seconds(
        "100-ms", COMPUTE, "100 ms, s", "compute:equal",
        what="20 tasks of 100 ms; ideal 1 s", load=Load(20, task_ms=100),
    ),
    Row(
        SHARED, MEMORY, "100 tasks that share one array: the peak, in copies of the array", "memory:shared",
        (Figure("copies", "array, copies", "copies"),), Load(100, 1_000_000_000),
        left_out={"parsl": "it sends the array again with each task"}, needs_linux=True,
    ),
    Row(
        "memory", MEMORY, "at rest, and the peak while 100 no-op tasks and 10 arguments of 5 MB repeat for 3 s",
        "memory:rest_and_peak", (Figure("rest", "rest, MB", "MB"), Figure("peak", "peak, MB", "MB")),
        Load(100, 5_000_000), needs_linux=True,
    ),
)  # fmt: skip
NAMES: Final = [row.name for row in ROWS]
BY_NAME: Final = {row.name: row for row in ROWS}
