"""What the agent holds for one account is bounded, and costs no other account its turn."""

import pytest

from cloudpar_protocol.limits import INLINE_RESULT_BYTES
from cloudpar_protocol.payloads import BlobData, BlobRef, Link, TaskCode, TaskResult
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


def upload(worker: Worker, index: int, executor_id: int) -> None:
    large_result(worker, index, executor_id=executor_id, data=bytes(INLINE_RESULT_BYTES + 1))


def publishes(worker: Worker) -> list[list[str]]:
    return [[made.lease_id for made in each.publications] for each in worker.of(do.Publish)]


def test_results_of_an_account_are_published_while_uploads_of_another_account_never_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without this, two uploads that the blob store refuses again and again would hold up all accounts of a worker."""
    monkeypatch.setattr(backlog, "RESULT_BYTES", 10**9)
    leases = [lease_of(CODE, 1, account="bad") for _ in range(3)] + [lease_of(CODE, 1, account="good") for _ in "12"]
    worker = Worker(*leases, executors=5)
    executors = {lease_id: executor_id for executor_id, lease_id in worker.fed}
    sent = []
    for lease in leases[:4]:
        upload(worker, 0, executors[lease.lease_id])
        sent += publishes(worker)
    assert sent == [[leases[0].lease_id], [leases[1].lease_id], [leases[3].lease_id]]
    worker.done(0, executors[leases[4].lease_id])
    assert publishes(worker) == [[leases[4].lease_id]]
    # The third upload waits, but the agent does not wake for it again and again.
    assert worker.state.deadline_at_us > worker.now
    published(worker, leases[0])
    assert publishes(worker) == [[leases[2].lease_id]]


def test_large_results_travel_apart_from_results_of_other_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "RESULT_BYTES", 10**9)
    leases = [lease_of(CODE, 20, account=account) for account in ("bad", "good", "small")]
    worker = Worker(*leases, executors=3)
    for executor_id, lease_id in worker.fed:
        result = b"" if lease_id == leases[2].lease_id else bytes(INLINE_RESULT_BYTES + 1)
        worker.state.facts.leases[lease_id].finished([TaskResult(0, "ok", 1, result)], worker.now)
        assert executor_id in worker.state.facts.executors
    worker.handle(on.TimePassed(), 10**7)
    made = {each.publications[0].lease_id: each.uploads_for for each in worker.of(do.Publish)}
    assert made == {leases[0].lease_id: "bad", leases[1].lease_id: "good", leases[2].lease_id: None}


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
