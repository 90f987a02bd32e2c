"""Checks the behaviour of programs, not their time, in cases in which joblib and Dask behave differently or fail."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import nbformat
from dask import bag
from nbclient import NotebookClient

from bench.cluster import up
from cloudpar import Pool
from cloudpar.errors import ExecutorOutOfMemory

from .engines import Engine, cloudpar_engine, dask_engine

LONG_TASKS: Final = 20


class Expectation(NamedTuple):
    """A program with an expected behaviour.

    Attributes:
        name: The name that `--only` takes.
        what: One line for the table.
        run: Raises an error if the pool behaves otherwise. Returns a text with a figure to show, or an empty text.
    """

    name: str
    what: str
    run: Callable[[], str]


def nap(seconds: float) -> float:
    """Sleep, and return the time at which the sleep started."""
    began = time.time()
    time.sleep(seconds)
    return began


def bars() -> str:
    """Check that a map reports its progress to a log."""
    with contextlib.redirect_stderr(io.StringIO()) as shown, Pool("local", workers=2, progress=True) as pool:
        list(pool.map(nap, [0.02] * 40))
    assert "nap" in shown.getvalue(), shown.getvalue()
    assert "40 of 40" in shown.getvalue(), shown.getvalue()
    return ""


def greet(number: int) -> None:
    print(f"hello {number}")


def logs() -> str:
    """Check that the lines that tasks print arrive with the numbers of their tasks."""
    lines: dict[int, str] = {}
    with Pool("local", workers=2, output=lambda index, out, _: lines.update({index: out})) as pool:
        list(pool.map(greet, range(20)))
    assert lines == {number: f"hello {number}\n" for number in range(20)}, lines
    return ""


def parse(text: str) -> int:
    """Parse a text; one of the 10,000 texts is invalid."""
    return int(text)


def one_error() -> str:
    """Check that an error names the one bad value of 10,000, and that the other values have no error."""
    texts = ["12"] * 10_000
    texts[7_312] = "twelve"
    with Pool("local", workers=2, progress=False) as pool:
        results = pool.map(parse, texts, return_exceptions=True)
        failed = [(number, error) for number, error in enumerate(results) if isinstance(error, Exception)]
    ((number, error),) = failed
    assert (number, getattr(error, "task_index", None)) == (7_312, 7_312), failed
    assert any("7,312 of 10,000" in note and "twelve" in note for note in error.__notes__), error.__notes__
    return ""


SLEEPER: Final = """
import time
from cloudpar import Pool
with Pool("local", workers=2, progress=False) as pool:
    results = pool.map(time.sleep, [0] + [60] * 10)
    next(results)
    print("started", flush=True)
    list(results)
"""


def interrupt() -> str:
    """Check that Ctrl-C ends the script at once, stops its tasks and prints what they cost."""
    program = [sys.executable, "-c", SLEEPER]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        script.stdout.readline()
        began = time.monotonic()
        script.send_signal(signal.SIGINT)
        _, said = script.communicate(timeout=30)
    assert script.returncode in {130, -signal.SIGINT}, (script.returncode, said)
    assert "cancelled package" in said, said
    return f"ended after {time.monotonic() - began:.2f} s"


CELLS: Final = (
    """
import threading
import time
from cloudpar import Pool
factor = 3
def times(x):
    time.sleep(0.5)
    return factor * x
pool = Pool("local", workers=2)
list(pool.map(times, range(8)))
""",
    """
factor = 5
list(pool.map(times, range(4)))
""",
    """
def divide(x):
    return 1 // x
list(pool.map(divide, [1, 0]))
""",
    """
lock = threading.Lock()
list(pool.map(lambda x: lock, [1]))
""",
    "pool.shutdown()",
)


def notebook() -> str:
    """Check how a pool behaves in a notebook.

    A map shows a progress bar, and its tasks use the values that variables have at the call. Errors are short: the
    error of a task shows the line of the cell that raised it, and the error about a function that cannot be sent names
    the variable that is the cause.
    """
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(book, timeout=60, allow_errors=True).execute()
    first, second, divided, unpicklable, _ = [cell.outputs for cell in book.cells]
    assert "times" in str([each.data for each in first if each.output_type == "display_data"]), first
    assert first[-1].data["text/plain"] == "[0, 3, 6, 9, 12, 15, 18, 21]", first
    assert second[-1].data["text/plain"] == "[0, 5, 10, 15]", second
    errors = ["\n".join(outputs[-1].traceback) for outputs in (divided, unpicklable)]
    assert "return 1 // x" in errors[0], errors[0]
    assert "the global `lock` that <lambda> uses" in errors[1], errors[1]
    lines = [len(error.splitlines()) for error in errors]
    assert max(lines) <= 30, lines
    return f"the errors have {lines[0]} and {lines[1]} lines"


def detach() -> str:
    """Check that one pool can start a package, and another pool can read it later."""
    with up(2) as cluster:
        with cluster.pool() as pool:
            results = pool.map(nap, [0.05] * 40)
            package_id = results.detach()
        with cluster.pool() as pool:
            assert len(pool.attach(package_id).results()) == 40
    return ""


def allocate(megabytes: int) -> int:
    """Allocate memory."""
    return len(bytearray(os.urandom(1) * (megabytes << 20))) >> 20


def memory() -> str:
    """Check that a task that takes too much memory fails alone, and that its error says why."""
    with Pool("local", workers=2, memory_mb=300, progress=False) as pool:
        results = list(pool.map(allocate, [1, 1, 2_000, 1], return_exceptions=True))
    assert [results[0], results[1], results[3]] == [1, 1, 1], results
    assert isinstance(results[2], ExecutorOutOfMemory), results
    return ""


def urgent() -> str:
    """Check that a call beside a long map starts when a task ends, not when the map ends."""
    with cloudpar_engine(2) as ours, dask_engine(2) as dask:
        before, waited_s = _waited_s(ours)
        _, dask_s = _waited_s(dask)
    assert before < LONG_TASKS, "only after all tasks of the map"
    return f"started after {waited_s:.2f} s, beside 5 s of tasks of 0.5 s; Dask: {dask_s:.2f} s"


def _waited_s(engine: Engine) -> tuple[int, float]:
    """Submit a long job and, a second later, one call.

    Return how many tasks of the job started before the call started, and for how many seconds the call waited.
    """
    assert engine.submit is not None
    engine.map(nap, [0.0] * 4)
    long = [engine.submit(nap, 0.5) for _ in range(LONG_TASKS)]
    time.sleep(1.0)
    asked = time.time()
    began = engine.submit(nap, 0.0).result()
    return sum(future.result() < began for future in long), began - asked


def dask_graph() -> str:
    """Check that Dask computes its own graphs with the pool as scheduler."""
    with Pool("local", workers=2, progress=False) as pool:
        squares = bag.from_sequence(range(1_000), npartitions=20).map(lambda x: x * x)
        assert squares.sum().compute(scheduler=pool) == 332_833_500
    return ""


EXPECTATIONS: Final = (
    Expectation("bars", "a map of 40 tasks reports its progress to a log", bars),
    Expectation("logs", "20 tasks print, and their lines arrive with their numbers", logs),
    Expectation("one-error", "an error names the one bad row of 10,000", one_error),
    Expectation("ctrl-c", "Ctrl-C stops a script and its tasks", interrupt),
    Expectation("notebook", "a notebook in its kernel: a bar, an edit between two calls, short errors", notebook),
    Expectation("detach", "a package is started by one pool and read by another", detach),
    Expectation("memory", "a task that takes too much memory fails alone", memory),
    Expectation("dask-graph", "Dask computes a bag of 20 parts with the pool as scheduler", dask_graph),
    Expectation("urgent", "a call beside a long map starts when a task ends", urgent),
)
