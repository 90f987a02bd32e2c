"""Repeated SIGTERMs to busy workers: each worker finishes its running tasks and takes no new ones."""

import signal
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count, islice
from pathlib import Path

from cloudpar import MapResults
from cloudpar_protocol import routes
from support.books import close_books
from support.customer import Customer
from support.scale import SCALE, Scale
from support.task_functions import NUMBER_BYTES, write_down
from support.waiting import until
from system.fleet import Fleet, Member
from system.journal import Entry
from system.site import Site

LATEST_S = 0.1
TASKS = SCALE(300, 2_000)
"""Tasks of a package; the next package starts when fewer than half of them are left."""

STARTED = 30
"""How many tasks run before the next signal: with fewer, a worker may not have been handed any yet."""

BUSY = SCALE(0.5, 0.8)
"""The share of the signals that must meet a worker with tasks; with few signals, chance matters more."""


def latest_s(member: Member) -> float:
    """Return how long after its signal a worker last requested tasks; 0 if it did not."""
    assert member.signalled_s is not None
    assert member.asked_s
    return max(0.0, *(asked_s - member.signalled_s for asked_s in member.asked_s))


def caught_busy(entries: Iterable[Entry], signalled_s: dict[str, float]) -> int:
    """Return how many workers published results after their signal."""
    return len(
        {
            entry.worker_id
            for entry in entries
            if entry.route == routes.PUBLISH_RESULTS.name
            and entry.asked_s > signalled_s.get(entry.worker_id, entry.asked_s)
        }
    )


def has_grown(path: Path, size: int) -> bool:
    """Whether a file has at least this many bytes."""
    return path.stat().st_size >= size


def test_g10_a_draining_worker_loses_no_task(tmp_path: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    signals, workers, ran, numbers = scale(4, 200), scale(2, 4), tmp_path / "ran", count()
    ran.touch()
    with Site(tmp_path / "site") as site, Fleet(site, workers, executors=2) as fleet:
        customer = Customer(site, "steady")
        with customer.pool() as pool:
            packages: list[MapResults[int]] = []
            for _ in range(signals):
                fleet.start().wait_until_ready()
                if ran.stat().st_size // NUMBER_BYTES > (len(packages) - 0.5) * TASKS:
                    jobs = [(number, str(ran)) for number in islice(numbers, TASKS)]
                    packages.append(pool.map(write_down, jobs))
                    wanted = ran.stat().st_size + STARTED * NUMBER_BYTES
                    until(partial(has_grown, ran, wanted))  # now each worker has some of its tasks
                fleet.lose(signal.SIGTERM)
            books = [close_books(site, customer.token, results.package_id or "") for results in packages]
            found = [number for results in packages for number in results]
        assert [member.wait() for member in fleet.former] == [0] * signals
        entries, signalled_s = list(site.journal()), fleet.died_s
        account = customer.account()
    assert found == list(range(len(packages) * TASKS))
    assert all(sorted(result.index for result in each.results) == list(range(TASKS)) for each in books)
    assert (account.spent_us, account.reserved_us) == (sum(each.execute_us for each in books), 0)
    written = ran.read_bytes()
    runs = sorted(written[at : at + NUMBER_BYTES] for at in range(0, len(written), NUMBER_BYTES))
    assert runs == [number.to_bytes(NUMBER_BYTES) for number in found], "each task ran once"
    late_s = max(map(latest_s, fleet.former))
    assert late_s <= LATEST_S
    busy = caught_busy(entries, signalled_s)
    assert busy >= BUSY * signals
    reached(
        f"{signals} SIGTERMs, {busy} of them to workers in the middle of tasks: 0 of {len(found):,} tasks lost, "
        f"0 run again, last retrieval {late_s * 1e3:.0f} ms after the signal"
    )
