"""Functions that several tests run as tasks. A task imports this module, so the module imports little."""

import os
import time
from pathlib import Path
from typing import Any

from cloudpar.demo.factorization import factorize, problem

TASKS = 80
NUMBERS = problem(TASKS, 500_000, seed=7)
"""Factorizations of about 10 ms each."""


def factorize_before_gate(job: tuple[int, str | None]) -> tuple[int, int]:
    """Factorize; with a gate, end only when that file exists."""
    number, gate = job
    while gate is not None and not Path(gate).exists():
        time.sleep(0.01)
    return factorize(number)


def main_job(gate: Path) -> list[tuple[int, str | None]]:
    """Return the demo's factorizations, of which the last does not end before the gate opens."""
    return [*((number, None) for number in NUMBERS[:-1]), (NUMBERS[-1], str(gate))]


def mark_and_wait(job: tuple[str, str]) -> str:
    """Record that this task runs, and wait for a gate."""
    running, gate = job
    Path(running).touch()
    while not Path(gate).exists():
        time.sleep(0.01)
    return "done"


def ten_milliseconds(number: int) -> int:
    """Sleep for 10 ms."""
    time.sleep(0.01)
    return number


def slowly_square(number: int) -> int:
    """Sleep for 50 ms and square."""
    time.sleep(0.05)
    return number**2


def zeros(job: tuple[int, float]) -> bytes:
    """Sleep, and return some bytes."""
    size, seconds = job
    time.sleep(seconds)
    return bytes(size)


def number_after_gate(job: tuple[int, str]) -> int:
    """Wait for a gate, and return the number of this task."""
    number, gate = job
    while not Path(gate).exists():
        time.sleep(0.01)
    return number


def pid_after_gate(job: tuple[str, str]) -> int:
    """Record that this task runs, wait for a gate, and return the id of this process."""
    marks, gate = job
    Path(marks, f"{os.getpid()} {time.monotonic_ns()}").touch()
    while not Path(gate).exists():
        time.sleep(0.01)
    return os.getpid()


NUMBER_BYTES = 8


def write_down(job: tuple[int, str]) -> int:
    """Write a mark with the number of this task, each time that it runs."""
    number, path = job
    with open(path, "ab", buffering=0) as file:  # noqa: PTH123 - a task, which imports little
        file.write(number.to_bytes(NUMBER_BYTES))
    time.sleep(0.02)
    return number


def read_bucket(asked: tuple[tuple[str, int], str]) -> tuple[str, bytes]:
    """Wait at an address. Return the temporary access key and what it reads from a bucket; without a key, nothing."""
    import socket

    import botocore.session

    place, endpoint = asked
    with socket.create_connection(place) as line:
        line.recv(1)
    session = botocore.session.get_session()
    found: Any = session.get_credentials()
    if found is None or found.token is None:  # the keys of the person who runs the tests have no token
        return "", b""
    client: Any = session.create_client("s3", endpoint_url=endpoint)
    return found.access_key, client.get_object(Bucket="data-of-ada", Key="x")["Body"].read()
