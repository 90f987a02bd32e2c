"""The tasks of a killed worker are handed out again soon; those of a live worker never are."""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from cloudpar_protocol import routes
from cloudpar_worker.core.master_policy import BEATS
from support.books import close_books
from support.customer import Customer
from support.scale import Scale
from support.task_functions import slowly_square
from system.fleet import Fleet
from system.holders import Holders, numbers
from system.site import Site

KILL_S = 1.0


def percentile(values: list[float], part: float) -> float:
    """Return the smallest value that this part of the values does not exceed."""
    return sorted(values)[math.ceil(part * len(values)) - 1]


def test_g07_lost_work_comes_back_soon(tmp_path: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    workers, tasks, lease_s = scale((2, 60, 2.4), (8, 8_000, 6.0))
    bound_s = lease_s + lease_s / BEATS
    with Site(tmp_path / "site", lease_s=lease_s) as site, Fleet(site, workers, executors=1) as fleet:
        customer = Customer(site, "waiting")
        with ThreadPoolExecutor(1) as reading, customer.pool() as pool:
            results = pool.map(slowly_square, range(tasks))
            assert results.package_id is not None
            closing = reading.submit(close_books, site, customer.token, results.package_id)
            while not wait([closing], timeout=KILL_S).done:
                if scale.full or not fleet.died_s:
                    fleet.lose()
                    fleet.start()
            closing.result()
            assert list(results) == [number**2 for number in range(tasks)]
        found = Holders(fleet.died_s).take(site.journal()).rescues
    late_s = [rescue.late_s for rescue in found if rescue.late_s is not None]
    assert found, "no killed worker had a task"
    assert len(late_s) == len(found), "a live worker's task was handed out to another"
    p99_s = percentile(late_s, 0.99)
    assert p99_s <= bound_s
    reached(
        f"{len(found):,} tasks of {len(fleet.died_s)} killed workers handed out again, p99 {p99_s:.2f} s and "
        f"at most {max(late_s):.2f} s after the kill (lease + one beat: {bound_s:g} s)"
    )


LEASE_S = 1.5


def is_long(number: int) -> bool:
    """Whether a task outlasts its lease."""
    return number % 50 == 7


def uneven(number: int) -> int:
    """Square a number, mostly fast. Some calls take longer than a lease; half of these use a processor meanwhile."""
    end = time.monotonic() + (2 * LEASE_S if is_long(number) else number % 6 / 100)
    while time.monotonic() < end:
        if number % 4 < 2:
            time.sleep(0.01)
    return number


def test_g07_tasks_of_live_workers_are_not_rescued(
    tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    workers, tasks = scale((1, 60), (4, 6_000))
    began = time.monotonic()
    with Site(tmp_path / "site", lease_s=LEASE_S) as site, Fleet(site, workers, executors=2):
        customer = Customer(site, "patient")
        with customer.pool() as pool:
            results = pool.map(uneven, range(tasks))
            assert list(results) == list(range(tasks))
        entries = list(site.journal())
    handed_out, extended, published = (
        [portion for entry in entries if entry.route == route.name for portion in entry.portions]
        for route in (routes.RETRIEVE_TASKS, routes.EXTEND_LEASES, routes.PUBLISH_RESULTS)
    )
    assert {task for portion in handed_out for task in numbers(portion.ranges)} == set(range(tasks))
    long = {portion.lease_id for portion in published if any(map(is_long, numbers(portion.ranges)))}
    assert long
    assert long <= {portion.lease_id for portion in extended}, "long tasks had their leases extended"
    assert Holders({}).take(entries).rescues == []
    reached(
        f"soak of {time.monotonic() - began:.0f} s with leases of {LEASE_S} s, tasks up to twice as long: "
        f"0 of {tasks:,} live tasks ({len(handed_out):,} chunks) rescued"
    )
