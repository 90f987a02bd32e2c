"""A task that crashes its executor gives one error with the reason; the other 999 tasks complete."""

import ctypes
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cloudpar.errors import ExecutorCrashed, ExecutorOutOfMemory
from support.books import close_books
from support.customer import Customer
from system.fleet import Fleet
from system.site import Site

TASKS = 1_000
DEADLY = 500
MEMORY_MB = 300


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Start a master and a worker with two executors for all tests of this file."""
    with Site(tmp_path_factory.mktemp("site")) as site, Fleet(site, 1, executors=2, memory_mb=MEMORY_MB):
        yield site


def segmentation_fault() -> None:
    ctypes.string_at(0)


def exit_at_once() -> None:
    os._exit(3)


def out_of_memory() -> None:
    held = bytearray()
    while True:
        held += bytearray(10**6)
        time.sleep(0.001)


def stack_overflow() -> None:
    sys.setrecursionlimit(10**9)
    nested: Any = []
    for _ in range(10**6):
        nested = [nested]
    pickle.dumps(nested)


# From Python 3.14 on, the interpreter notices the end of the stack.
OVERFLOW = (RecursionError, "") if sys.version_info >= (3, 14) else (ExecutorCrashed, r"segmentation fault \(SIGSEGV\)")

CRASHES = [
    (segmentation_fault, ExecutorCrashed, r"segmentation fault \(SIGSEGV\)"),
    (exit_at_once, ExecutorCrashed, "exit code 3"),
    (out_of_memory, ExecutorOutOfMemory, f"over its limit of {MEMORY_MB} MB"),
    (stack_overflow, *OVERFLOW),
]


@pytest.mark.parametrize(("crash", "kind", "reason"), CRASHES, ids=lambda each: getattr(each, "__name__", ""))
def test_g08_a_crashing_task_fails_alone_with_the_reason(
    site: Site, crash: Callable[[], None], kind: type[Exception], reason: str, reached: Callable[[str], None]
) -> None:
    customer = Customer(site, crash.__name__)

    def maybe(number: int) -> int:
        if number == DEADLY:
            crash()
        return -number

    with customer.pool() as pool:
        results = pool.map(maybe, range(TASKS))
        assert results.package_id is not None
        found = [next(results) for _ in range(DEADLY)]
        with pytest.raises(kind, match=reason) as caught:
            next(results)
        found += results
        books = close_books(site, customer.token, results.package_id)
    assert found == [-number for number in range(TASKS) if number != DEADLY]
    customer.assert_charged_once(books, TASKS)
    assert books.last.progress.errors == 1
    reached(f"{crash.__name__}: {type(caught.value).__name__} with the reason, {len(found)} other tasks finished")
