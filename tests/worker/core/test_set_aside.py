"""A worker that cannot run a package gives it back with the reason, and retrieves no more of it."""

import signal
from typing import Any

from cloudpar_protocol.limits import BULK_ITEMS
from cloudpar_protocol.payloads import LACKS_CHARS, BlobData, BlobRef, Link, Unfit
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import UNFIT, ExecutorResult
from support.leases import lease_of
from worker.driven import CODE, Worker

NUMPY = "no module named 'numpy'"


def unfit(index: int, duration_us: int = 10) -> ExecutorResult:
    return ExecutorResult(index, UNFIT, duration_us, message=NUMPY)


def results(worker: Worker, *found: ExecutorResult) -> None:
    worker.handle(on.Results(0, list(found), worker.now - 1))


def test_a_task_that_lacks_a_module_is_given_back_with_all_untouched_tasks() -> None:
    lease = lease_of(CODE, 5, elsewhere=True)
    worker = Worker(lease)
    results(worker, unfit(0))
    (back,) = worker.returned
    assert (back.ranges, back.unfit, back.used_us, back.closes) == ([(0, 5)], Unfit("", NUMPY), 10, True)
    assert [warned.text for warned in worker.of(do.Warn)] == [
        f"this worker cannot run package {lease.package_id}, and leaves it to workers that can: {NUMPY}"
    ]
    worker.handle(on.GivenBack([lease.lease_id]))
    assert [asked.set_aside for asked in worker.of(do.Retrieve)] in ([], [[lease.package_id]])
    assert worker.state.facts.set_aside == {lease.package_id: (lease.account, Unfit("", NUMPY))}
    assert worker.of(do.Publish) == []


def test_results_from_before_the_package_was_set_aside_are_published() -> None:
    worker = Worker(lease_of(CODE, 2, elsewhere=True))
    results(worker, ExecutorResult(0, "ok", 10, data=b"value"))
    worker.handle(on.TimePassed(), after_us=1_000_000)
    results(worker, unfit(1))
    assert [item.ranges for item in worker.returned] == [[(1, 2)]]


def test_the_time_before_a_task_says_that_it_lacks_a_module_is_charged_by_the_agents_clock() -> None:
    """Otherwise a task could compute for free, and then claim that it lacks something."""
    worker = Worker(lease_of(CODE, 1, elsewhere=True))
    worker.handle(on.TimePassed(), after_us=900_000)
    results(worker, unfit(0, duration_us=1))
    (back,) = worker.returned
    assert 0.9 * 900_000 <= back.used_us <= 902_000, "the agent permits a small difference"


def test_an_executor_that_says_so_of_a_package_that_no_other_worker_can_run_is_ended() -> None:
    """Its own code does not. The task would run here again and again, and never be charged."""
    lease = lease_of(CODE, 1)
    worker = Worker(lease)
    worker.handle(on.TimePassed(), after_us=900_000)
    results(worker, unfit(0))
    assert [kill.executor_id for kill in worker.of(do.Kill)] == [0]
    worker.handle(on.ExecutorGone(0, -signal.SIGKILL))
    assert worker.published == [(lease.package_id, 1)]
    assert worker.charged_us[0] >= 900_000


def test_a_lease_of_a_package_that_is_set_aside_is_given_back_at_once() -> None:
    first = lease_of(CODE, 1, elsewhere=True)
    worker = Worker(first)
    results(worker, unfit(0))
    again = lease_of(CODE, 3, elsewhere=True, package_id=first.package_id)
    worker.handle(on.Retrieved([again]))
    assert [item.ranges for item in worker.returned] == [again.ranges]
    assert worker.of(do.Feed) == []


def test_a_package_that_no_worker_can_run_is_run_and_fails() -> None:
    first = lease_of(CODE, 1, elsewhere=True)
    worker = Worker(first)
    results(worker, unfit(0))
    worker.handle(on.GivenBack([first.lease_id]))
    worker.handle(on.Retrieved([lease_of(CODE, 3, package_id=first.package_id)]))
    assert worker.state.facts.set_aside == {}
    assert worker.of(do.Feed) != []


def test_a_python_that_does_not_start_sets_its_packages_aside() -> None:
    lease = lease_of(CODE, 5, python="3.12", elsewhere=True)
    worker = Worker(lease, pythons=("3.13", "3.12"))
    worker.handle(on.PythonFailed("3.12"))
    (back,) = worker.returned
    assert (back.ranges, back.unfit) == ([(0, 5)], Unfit("", "no Python 3.12"))
    assert worker.state.facts.pythons == ["3.13"]


def test_the_oldest_packages_set_aside_are_forgotten() -> None:
    worker = Worker()
    for number in range(BULK_ITEMS + 5):
        worker.state.facts.set_package_aside(lease_of(CODE, 1, package_id=f"p{number}"), NUMPY)
    assert list(worker.state.facts.set_aside) == [f"p{number}" for number in range(5, BULK_ITEMS + 5)]


def test_an_account_with_many_packages_set_aside_makes_the_worker_forget_none_of_another_account() -> None:
    """Otherwise the worker would retrieve the other account's tasks again and again."""
    worker = Worker()
    other = lease_of(CODE, 1, package_id="other", account="bob")
    worker.state.facts.set_package_aside(other, NUMPY)
    for number in range(2 * BULK_ITEMS):
        worker.state.facts.set_package_aside(lease_of(CODE, 1, package_id=f"p{number}", account="ann"), NUMPY)
    assert len(worker.state.facts.set_aside) == BULK_ITEMS
    assert list(worker.state.facts.set_aside)[:2] == ["other", f"p{BULK_ITEMS + 1}"]


def test_the_reason_of_a_hostile_executor_changes_no_terminal_and_fits_into_a_give_back() -> None:
    """A task can write such a result to its executor's channel itself; the worker logs the reason and sends it on."""
    lease = lease_of(CODE, 1, elsewhere=True)
    worker = Worker(lease)
    results(worker, ExecutorResult(0, UNFIT, 10, message="\x1b[2Jforged\n2026-01-01 line" + "x" * 10_000))
    (back,) = worker.returned
    assert back.unfit is not None
    assert back.unfit.lacks.startswith("?[2Jforged 2026-01-01 line")
    assert back.unfit.lacks.isprintable()
    assert len(back.unfit.lacks) == LACKS_CHARS
    (warned,) = worker.of(do.Warn)
    assert warned.text.endswith(back.unfit.lacks)


GONE = "its payload cannot be downloaded: this blob was deleted"
BLOB: dict[str, Any] = {"data": BlobData(BlobRef("data/one", 100)), "data_link": Link("GET", "data/one")}


def test_a_package_whose_payload_cannot_be_downloaded_is_left_to_other_workers_without_a_loss() -> None:
    """Once, the lease expired, so that the master counted lost workers, and the chunk became a suspect."""
    lease, other = lease_of(CODE, 3, elsewhere=True, attempt=2, **BLOB), lease_of(CODE, 100)
    worker = Worker(lease, other)
    worker.handle(on.DownloadFailed(lease.lease_id, stale=False, why="this blob was deleted"))
    (back,) = worker.returned
    assert (back.lease_id, back.ranges, back.attempt, back.closes) == (lease.lease_id, [(0, 3)], 2, True)
    assert back.unfit == Unfit("", GONE)


def test_a_package_whose_payload_no_worker_can_download_fails_with_the_reason() -> None:
    lease = lease_of(CODE, 3, **BLOB)
    worker = Worker(lease)
    worker.handle(on.DownloadFailed(lease.lease_id, stale=False, why="this blob was deleted"))
    (publish,) = worker.of(do.Publish)
    (made,) = publish.publications
    assert (made.closes, made.refused, made.message) == (True, "payload", GONE)
    assert worker.returned == []
