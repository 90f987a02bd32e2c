"""Runs many processes at once. Each is a thread with adapters of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from cloudpar_master.adapters.aws.errors import translate
from cloudpar_protocol.errors import Unavailable
from support.clock import SetClock
from support.stores import Factory, Stores

T = TypeVar("T")

LONGEST_S = 60.0


def race(factory: Factory, folder: Path, clock: SetClock, racers: int, run: Callable[[Stores, int], T]) -> list[T]:
    """Call `run(stores, number)` in this many threads at once. None starts before all are ready.

    The data must exist already: a process makes them alone, under the folder's lock.
    """
    line = threading.Barrier(racers, timeout=LONGEST_S)

    def racer(number: int) -> T:
        try:
            with factory(folder, clock) as stores:
                line.wait()
                return run(stores, number)
        except BaseException:
            line.abort()
            raise

    with ThreadPoolExecutor(racers) as threads:
        return list(threads.map(racer, range(racers)))


def patiently(call: Callable[[], T]) -> T:
    """Repeat a call until it is answered, as clients do: a busy engine may refuse it, as AWS does."""
    while True:
        try:
            return call()
        except Exception as error:
            if not isinstance(translate(error), Unavailable):
                raise
