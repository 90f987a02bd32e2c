"""The function that the tasks of a history call. It runs in workers, and its value tells which task it was."""

import os
import time

LONG_S, SHORT_S = 0.15, 0.003
LONG, ERROR, LARGE, CRASH = 19, 23, 29, 61
"""Multiples of these numbers take long, fail, have a value that is too large for a message, or end their executor."""
LARGE_BYTES = 50_000


def task(number: int) -> int | bytes:
    """Take some time, and return a value of the number, or fail because of it."""
    time.sleep(LONG_S if number % LONG == 0 else SHORT_S)
    if number % ERROR == 0:
        raise ValueError(number)
    if number % CRASH == 0:
        os._exit(1)
    return bytes(LARGE_BYTES) if number % LARGE == 0 else value(number)


def value(number: int) -> int:
    return 2 * number + 1
