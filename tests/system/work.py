"""What the tasks of these tests do."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

from cloudpar.demo.factorization import factorize, problem

HANG_S = 60.0
"""Only a hang takes this long."""

TASKS = 80
NUMBERS = problem(TASKS, 500_000, seed=7)
"""About 10 ms each."""


def await_file(path: Path) -> None:
    """Wait until a task has made a file."""
    until(path.exists)


def until(condition: Callable[[], bool], longest_s: float = HANG_S) -> None:
    """Wait for a condition that another process brings about."""
    deadline = time.monotonic() + longest_s
    while not condition():
        assert time.monotonic() < deadline
        Event().wait(0.01)


def factorize_before_gate(job: tuple[int, str | None]) -> tuple[int, int]:
    """Factorize; with a gate, end only once that file is there."""
    number, gate = job
    while gate is not None and not Path(gate).exists():
        time.sleep(0.01)
    return factorize(number)


def main_job(gate: Path) -> list[tuple[int, str | None]]:
    """The demo's factorizations, of which the last does not end before the gate is opened."""
    return [*((number, None) for number in NUMBERS[:-1]), (NUMBERS[-1], str(gate))]


def mark_and_wait(job: tuple[str, str]) -> str:
    """Say that it runs, and wait for a gate."""
    running, gate = job
    Path(running).touch()
    while not Path(gate).exists():
        time.sleep(0.01)
    return "done"


def ten_milliseconds(number: int) -> int:
    """A short task that uses no processor."""
    time.sleep(0.01)
    return number


def endless(running: str) -> None:
    """It never ends by itself."""
    Path(running).touch()
    while True:
        time.sleep(3600)


def slowly_square(number: int) -> int:
    """50 ms that use no processor."""
    time.sleep(0.05)
    return number**2


def pid_after_gate(job: tuple[str, str]) -> int:
    """Say that it runs, wait for a gate, and return whose result this is."""
    marks, gate = job
    Path(marks, f"{os.getpid()} {time.monotonic_ns()}").touch()
    while not Path(gate).exists():
        time.sleep(0.01)
    return os.getpid()


NUMBER_BYTES = 8


def write_down(job: tuple[int, str]) -> int:
    """Leave a mark that says which task this is, each time that it runs."""
    number, path = job
    with open(path, "ab", buffering=0) as file:  # noqa: PTH123 - a task, which imports little
        file.write(number.to_bytes(NUMBER_BYTES))
    time.sleep(0.02)
    return number
