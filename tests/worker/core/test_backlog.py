"""What the agent holds for one account is bounded, and costs no other account its turn."""

import pytest

from cloudpar_protocol.payloads import BlobData, BlobRef, Link, TaskCode
from cloudpar_protocol.worker_messages import Lease, LeaseView
from cloudpar_worker.core import backlog
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.decisions import FULL_US
from cloudpar_worker.core.executor_result import ExecutorResult
from support.leases import lease_of
from worker.driven import CODE, Worker

LARGE = 1000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "RESULT_BYTES", 2 * LARGE)
    monkeypatch.setattr(backlog, "PAYLOAD_BYTES", 2 * LARGE)


def large_result(worker: Worker, index: int, *, executor_id: int = 0, **changes: bytes | str) -> None:
    fields = {"data": bytes(LARGE)} | changes
    result = ExecutorResult(index, "ok", 100_000, **fields)  # type: ignore[arg-type]
    worker.handle(on.Results(executor_id, [result], worker.now + 100_000), 100_000)


def published(worker: Worker, lease: Lease) -> None:
    view = LeaseView(lease_id=lease.lease_id, state="wanted", ranges=[(0, 10)], lease_s=60.0, budget_us=10**15)
    worker.handle(on.Published([lease.lease_id], [view], hungry=False, request_us=1_000))


def test_an_account_whose_results_wait_for_the_master_gets_no_executor() -> None:
    """If the master is away, or uploads are slow, results of 100 MB would otherwise fill the agent's memory."""
    lease, other = lease_of(CODE, 10), lease_of(CODE, 10, account="other")
    worker = Worker(lease)
    large_result(worker, 0)
    assert worker.fed == [(0, lease.lease_id)]
    large_result(worker, 1)
    assert worker.fed == []
    worker.handle(on.Retrieved([other]))
    worker.handle(on.ExecutorGone(0, -9))
    worker.handle(on.ExecutorReady(1))
    assert worker.fed == [(1, other.lease_id)]
    published(worker, lease)
    assert worker.state.facts.leases[lease.lease_id].result_bytes <= LARGE + 200


def test_an_account_gets_executors_again_when_the_master_has_its_results() -> None:
    lease = lease_of(CODE, 10)
    worker = Worker(lease)
    large_result(worker, 0)
    large_result(worker, 1)
    while worker.fed == []:
        published(worker, lease)
    assert worker.fed == [(0, lease.lease_id)]


def test_the_texts_of_results_count() -> None:
    lease = lease_of(CODE, 10)
    worker = Worker(lease)
    large_result(worker, 0, data=b"", stdout="x" * 2 * LARGE)
    assert worker.fed == []


def data_lease(items: int = 10, **changes: str) -> Lease:
    data = BlobData(BlobRef("data/one", 10**9))
    return lease_of(CODE, items, data=data, data_link=Link("GET", "data"), **changes)


def downloads(worker: Worker) -> list[str]:
    return [each.lease.lease_id for each in worker.of(do.Download)]


def test_no_payload_is_downloaded_while_others_of_its_account_wait() -> None:
    first, second, other = data_lease(), data_lease(), data_lease(account="other")
    worker = Worker(first, second)
    assert downloads(worker) == [first.lease_id, second.lease_id]
    worker.handle(on.Downloaded(first.lease_id, (0, 1), LARGE, 1_000))
    assert downloads(worker) == [first.lease_id]
    worker.handle(on.Downloaded(first.lease_id, (1, 2), LARGE, 1_000))
    assert downloads(worker) == []
    worker.handle(on.Retrieved([other]))
    assert downloads(worker) == [other.lease_id]
    large_result(worker, 0, data=b"")
    worker.handle(on.TimePassed(), FULL_US)
    assert downloads(worker) == [first.lease_id]


def test_an_account_has_at_most_two_downloads_under_way() -> None:
    leases = [data_lease() for _ in range(4)]
    worker = Worker(*leases)
    assert downloads(worker) == [lease.lease_id for lease in leases[:2]]
    worker.handle(on.DownloadFailed(leases[0].lease_id, stale=False))
    assert downloads(worker) == [leases[2].lease_id]


def test_code_of_waiting_tasks_counts() -> None:
    code = TaskCode("1" * 64, blob=BlobRef("code/one", 2 * LARGE))
    first, second = lease_of(code, 10, code_link=Link("GET", "code")), data_lease()
    worker = Worker(first)
    worker.handle(on.Downloaded(first.lease_id, (0, 10), 0, 1_000))
    worker.handle(on.Retrieved([second]))
    assert downloads(worker) == []


def test_tasks_whose_payload_no_executor_can_hold_end_with_the_outcome_memory() -> None:
    lease = data_lease(items=3)
    worker = Worker(lease)
    worker.handle(on.TooLarge(lease.lease_id, (0, 2), 2 * 10**9))
    assert downloads(worker) == [lease.lease_id]
    worker.handle(on.TooLarge(lease.lease_id, (2, 3), 2 * 10**9))
    (publish,) = worker.of(do.Publish)
    results = [result for made in publish.publications for result in made.results]
    assert [(result.index, result.outcome) for result in results] == [(0, "memory"), (1, "memory"), (2, "memory")]
    assert "take 1907 MB, over its executor's limit of 953 MB" in (results[0].message or "")
    assert publish.publications[-1].closes


def test_a_payload_too_large_of_a_lease_that_has_ended_is_ignored() -> None:
    worker = Worker()
    worker.handle(on.TooLarge("ended", (0, 1), 10**10))
    assert worker.of(do.Publish) == []
