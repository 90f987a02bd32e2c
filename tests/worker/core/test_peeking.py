"""Chunks of other packages that a busy worker learns of, and fetches."""

from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import ExecutorResult
from support.leases import lease_of
from worker.driven import CODE, Worker

TASK_US = 1_000_000


def with_stock() -> Worker:
    """One executor, which runs the first of ten tasks of one second each."""
    worker = Worker(lease_of(CODE, 10, mean_us=TASK_US))
    worker.handle(on.Downloaded(next(iter(worker.state.facts.leases)), (0, 10), 0, 0))
    return worker


def end_of(worker: Worker, index: int) -> on.Results:
    return on.Results(0, [ExecutorResult(index, "ok", TASK_US, b"")], worker.now)


def fetches(worker: Worker) -> list[do.Retrieve]:
    return [each for each in worker.of(do.Retrieve) if each.besides]


def test_a_chunk_that_a_peek_saw_is_fetched_when_an_executor_is_free() -> None:
    worker = with_stock()
    worker.handle(on.Extended([], waiting=True))
    assert not fetches(worker)
    worker.handle(end_of(worker, 0), TASK_US)
    assert len(fetches(worker)) == 1


def test_a_surplus_executor_that_may_not_run_is_not_free() -> None:
    """After its task has waited, the worker has two executors, and only one of them may run at a time."""
    worker = with_stock()
    worker.handle(on.TaskWaits(0, waits=True))
    (spawned,) = worker.of(do.Spawn)
    worker.handle(on.ExecutorReady(spawned.executor_id))
    worker.handle(on.TaskWaits(0, waits=False))
    worker.handle(on.Extended([], waiting=True))
    assert not fetches(worker)
    worker.handle(end_of(worker, 0), TASK_US)
    assert len(fetches(worker)) == 1


def test_a_worker_whose_fetch_brings_nothing_does_not_fetch_again_at_once() -> None:
    """Another worker was faster, and the master has not noticed yet; the executor continues with the tasks here."""
    worker = with_stock()
    worker.handle(on.Extended([], waiting=True))
    worker.handle(end_of(worker, 0), TASK_US)
    assert not worker.of(do.Feed)
    worker.handle(on.Retrieved([], besides=True, waiting=True))
    assert not fetches(worker)
    assert worker.of(do.Feed)


def in_stock(worker: Worker) -> list[str]:
    return [record.lease.account for record in worker.state.facts.leases.values()]


def fetch_all(worker: Worker, leases: list[Lease]) -> None:
    """The master hands out one chunk for each fetch, while it has some, and says that others wait."""
    while fetches(worker) and leases:
        worker.handle(on.Retrieved([leases.pop(0)], besides=True, waiting=True), 100)


def test_a_worker_with_short_tasks_does_not_collect_a_chunk_of_each_package() -> None:
    packages = [lease_of(CODE, 20, start=10, mean_us=10_000, package_id=f"{number:032}") for number in range(100)]
    worker = Worker(packages.pop())
    worker.handle(on.Extended([], waiting=True))
    fetch_all(worker, packages)
    assert len(in_stock(worker)) == 2
    assert not fetches(worker)


def test_a_worker_with_short_tasks_fetches_all_chunks_of_an_account_that_it_does_not_run() -> None:
    chunks = [
        lease_of(CODE, 1, start=start, mean_us=10_000, account="other", package_id="o" * 32) for start in range(3, 8)
    ]
    worker = Worker(lease_of(CODE, 20, mean_us=10_000))
    worker.handle(on.Extended([], waiting=True))
    fetch_all(worker, chunks)
    assert in_stock(worker).count("other") == 5
