"""Masters of the last release fold a head with more entries than that release permits."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from cloudpar_master.services.backend import hash_token
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import CancelTasks, StartTasks
from cloudpar_protocol.payloads import RangeData, TaskCode, TaskResult
from cloudpar_protocol.worker_messages import Lease, Publication, PublishResults, RetrieveTasks
from support.stores import Stores

from .releases import LAST, TOKEN, Deployment, Functions, last_and_today

ENTRIES = 560
"""The most entries of a head in 0.3.0."""

CHUNKS, CHUNKSIZE = 580, 5
TASKS = CHUNKS * CHUNKSIZE
EXECUTORS = 1_000
DURATION_US = 1_000
OTHER = TOKEN[::-1]

WHOLE = [range(CHUNKSIZE)]
SCATTERED = [range(1, CHUNKSIZE, 2), range(0, CHUNKSIZE, 2)]
"""The publications of a chunk, each as its task numbers. Executors that share a chunk may end its tasks like that."""

_numbers = count()


@pytest.fixture
def both(stack: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Functions, Functions]]:
    """The functions of the last release and of today, with windows as for a large fleet."""
    policy = {"lease_s": 60, "chunk_target_us": 10_000, "request_burst": 10**9, "largest_window": CHUNKS}
    monkeypatch.setenv("CLOUDPAR_POLICY", json.dumps(policy))
    with last_and_today(tmp_path) as both:
        today = Deployment(both[1])
        for token in (TOKEN, OTHER):
            facts = {"token_hash": hash_token(token), "quota_us": 10**12}
            today.operate(routes.CREATE_ACCOUNT, idempotency_key=token, name=token, **facts)
        yield both


def start(on: Deployment, tasks: int, token: str) -> str:
    """Start a package and return its id."""
    asked = StartTasks(
        idempotency_key=f"map-{next(_numbers)}", n=tasks, code=TaskCode("0" * 64, b"code"), data=RangeData(0, 1),
        python="3.11", chunksize=CHUNKSIZE,
    )  # fmt: skip
    return on.ask(routes.START_TASKS, asked, token).package_id


def retrieve(on: Deployment, executors: int = 10) -> list[Lease]:
    """Return leases of up to ten chunks, for a worker with this number of executors."""
    asked = RetrieveTasks(
        attempt_id=f"{next(_numbers)}", worker_id=f"worker-{executors}", executors=executors, chunks=10,
        host="host", pythons=["3.11"],
    )  # fmt: skip
    return on.ask(routes.RETRIEVE_TASKS, asked).leases


def open_wide(today: Deployment, stack: Stores) -> tuple[str, list[Lease]]:
    """Start a package whose head gets more than ENTRIES entries. Returns its id, and the leases that were retrieved."""
    package_id, leases = start(today, TASKS, TOKEN), []
    while open_ranges(stack, package_id) <= ENTRIES:
        leases += retrieve(today, EXECUTORS)
    return package_id, leases


def open_ranges(stack: Stores, package_id: str) -> int:
    head = stack.packages.load(package_id)
    assert head is not None
    return len(head.tasks.open)


def publish(on: Deployment, leases: Sequence[Lease], parts: Sequence[range]) -> None:
    """Publish the results of these leases in parts."""
    for seq, part in enumerate(parts):
        publications = [
            Publication(
                **lease.identity(),
                seq=seq,
                results=[
                    TaskResult(task, "ok", DURATION_US, data=b"%d" % task)
                    for start, end in lease.ranges
                    for task in range(start, end)
                    if task % CHUNKSIZE in part
                ],
                closes=seq == len(parts) - 1,
            )
            for lease in leases
        ]
        on.ask(routes.PUBLISH_RESULTS, PublishResults(worker_id="worker-10", executors=10, publications=publications))


def run(on: Deployment, parts: Sequence[range], leases: Sequence[Lease] = ()) -> None:
    """Run the tasks of these leases, and then those of all chunks in the queue."""
    leases = leases or retrieve(on)
    while leases:
        publish(on, leases, parts)
        leases = retrieve(on)


@pytest.mark.timeout(300)
def test_a_wide_head_of_today_loses_nothing_to_masters_of_the_last_release(
    both: tuple[Functions, Functions], stack: Stores, reached: Callable[..., None]
) -> None:
    last, today, update = Deployment(both[0]), Deployment(both[1]), Deployment(*both)
    package_id, leases = open_wide(today, stack)
    # 0.3.0 declines results whose rest would need more entries. It does not charge their time, and queues their chunks
    # again.
    publish(last, leases, SCATTERED)
    progress = last.status(package_id, TOKEN).progress
    assert (progress.done, progress.charged_us) == (0, 0)
    assert open_ranges(stack, package_id) > ENTRIES
    # It takes all other results.
    leases = retrieve(last)
    done = sum(lease.end - lease.start for lease in leases)
    publish(last, leases, WHOLE)
    assert last.status(package_id, TOKEN).progress.done == done
    # Other functions of the update are of today, and take the results that 0.3.0 declines.
    run(update, SCATTERED)
    results: list[TaskResult] = []
    cursor, more = 0, True
    while more:
        status = update.status(package_id, TOKEN, cursor)
        results += status.results
        cursor, more = status.cursor, status.more
    assert (status.state, status.settled) == ("completed", True)
    assert sorted((each.index, each.data) for each in results) == [(task, b"%d" % task) for task in range(TASKS)]
    assert {each.spent_us for each in update.operate(routes.LIST_ACCOUNTS).accounts} == {0, TASKS * DURATION_US}
    assert {each.reserved_us for each in update.operate(routes.LIST_ACCOUNTS).accounts} == {0}
    reached(f"{LAST} folds a head of today with more than {ENTRIES} entries: nothing is lost or charged twice")


@pytest.mark.timeout(300)
def test_a_wide_head_of_today_holds_up_no_other_package_of_the_last_release(
    both: tuple[Functions, Functions], stack: Stores
) -> None:
    last, today = Deployment(both[0]), Deployment(both[1])
    wide, leases = open_wide(today, stack)
    publish(last, leases, SCATTERED)
    other = start(last, CHUNKSIZE, OTHER)
    while last.status(other, OTHER).state == "running":
        publish(last, retrieve(last), SCATTERED)
    assert last.status(wide, TOKEN).progress.done == 0
    last.ask(routes.CANCEL_TASKS, CancelTasks(package_id=wide), TOKEN)
    status = last.status(wide, TOKEN)
    assert (status.state, status.progress.charged_us) == ("cancelled", 0)
