"""When a worker renews its leases: by beats, and by publications if the master renews leases by these."""

import pytest

from cloudpar_protocol.limits import INLINE_RESULT_BYTES
from cloudpar_protocol.payloads import TaskResult
from cloudpar_protocol.worker_messages import LeaseRef, LeaseView
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import ExecutorResult
from support.leases import lease_of
from worker.driven import CODE, Worker

SECOND = 1_000_000


def working(beat_s: float) -> Worker:
    """Return a worker with two leases of a package, which has just published a result of the first."""
    first = lease_of(CODE, 9, mean_us=SECOND, lease_s=180.0, beat_s=beat_s)
    second = lease_of(CODE, 9, mean_us=SECOND, lease_s=180.0, beat_s=beat_s, package_id=first.package_id, start=9)
    worker = Worker(first, second)
    worker.done(0)
    worker.handle(on.TimePassed(), after_us=SECOND)
    assert worker.published == [(first.package_id, 1)]
    return worker


def answer(worker: Worker, *lease_ids: str) -> None:
    """Answer the publication, with views of these leases."""
    views = [LeaseView(lease_id=each, state="wanted", ranges=[(0, 18)], budget_us=10**15) for each in lease_ids]
    worker.handle(on.Published([next(iter(worker.state.facts.leases))], views, False, 1_000))


def beats_after(worker: Worker, after_us: int) -> list[LeaseRef]:
    worker.handle(on.TimePassed(), after_us=after_us)
    return [ref for extend in worker.of(do.Extend) for ref in extend.leases]


def test_a_lease_without_its_own_time_is_renewed_after_a_third_of_its_length() -> None:
    worker = Worker(lease_of(CODE, 9, lease_s=180.0))
    assert beats_after(worker, 59 * SECOND) == []
    assert len(beats_after(worker, SECOND)) == 1


def test_a_lease_is_renewed_after_the_time_that_the_master_says_but_no_later_than_after_a_third_of_its_length() -> None:
    worker = Worker(lease_of(CODE, 9, lease_s=180.0, beat_s=5.0))
    assert len(beats_after(worker, 5 * SECOND)) == 1
    worker = Worker(lease_of(CODE, 9, lease_s=180.0, beat_s=500.0))
    assert len(beats_after(worker, 60 * SECOND)) == 1


def test_a_publication_names_the_other_leases_and_moves_the_next_beat() -> None:
    worker = working(beat_s=20.0)
    first, second = worker.state.facts.leases
    (publish,) = worker.of(do.Publish)
    assert publish.others is not None
    assert [ref.lease_id for ref in publish.others] == [second]
    answer(worker, first, second)
    assert beats_after(worker, 19 * SECOND) == []
    assert [ref.lease_id for ref in beats_after(worker, 2 * SECOND)] == [first, second]


def test_a_publication_that_did_not_renew_a_lease_does_not_move_the_beat() -> None:
    worker = working(beat_s=20.0)
    first, _ = worker.state.facts.leases
    answer(worker, first)
    assert len(beats_after(worker, 19 * SECOND)) == 2


def test_publications_renew_no_leases_of_a_master_that_does_not_renew_them() -> None:
    worker = working(beat_s=0.0)
    (publish,) = worker.of(do.Publish)
    assert publish.others is None
    answer(worker, *worker.state.facts.leases)
    assert len(beats_after(worker, 59 * SECOND)) == 2


def test_a_worker_that_awaits_its_next_chunk_does_not_publish_because_an_executor_is_free() -> None:
    """It publishes if the retrieval brings nothing: a client may be waiting for the last results."""
    lease = lease_of(CODE, 2, mean_us=SECOND, lease_s=180.0, beat_s=20.0, collect_us=60 * SECOND)
    worker = Worker(lease, executors=2)
    worker.handle(on.Results(0, [ExecutorResult(0, "ok", SECOND, b"")], worker.now), after_us=SECOND)
    assert worker.of(do.Retrieve)
    assert worker.published == []
    worker.handle(on.Retrieved([], SECOND))
    assert worker.published == [(lease.package_id, 1)]


def test_a_beat_waits_a_little_for_the_answer_to_a_publication() -> None:
    """The answer moves the beat. If no answer comes, the beat renews the leases."""
    worker = Worker(lease_of(CODE, 9, mean_us=SECOND, lease_s=180.0, beat_s=20.0))
    worker.done(0)
    assert beats_after(worker, 19 * SECOND) == []
    assert len(worker.published) == 1
    assert beats_after(worker, 2 * SECOND) == []
    assert len(beats_after(worker, 4 * SECOND)) == 1


@pytest.mark.parametrize(("beat_s", "after_s"), [(20.0, 20), (0.0, 40)])
def test_the_last_results_of_a_long_shared_lease_wait_for_half_of_the_time(beat_s: float, after_s: int) -> None:
    """The master then cuts the chunk that the next worker needs."""
    first = lease_of(CODE, 1, mean_us=SECOND, lease_s=180.0, beat_s=beat_s, collect_us=40 * SECOND)
    second = lease_of(CODE, 90, mean_us=SECOND, lease_s=180.0, package_id=first.package_id, start=1)
    worker = Worker(first, second)
    worker.state.facts.durations[first.package_id].publications = 20
    worker.done(0)
    worker.handle(on.TimePassed(), after_us=(after_s - 1) * SECOND)
    assert worker.published == []
    worker.handle(on.TimePassed(), after_us=2 * SECOND)
    assert worker.published == [(first.package_id, 1)]


def working_for(*accounts: str) -> Worker:
    """Return a worker with a lease of each account, and with an unpublished result of each but the account "idle".

    The result of the account "large" has to be uploaded.
    """
    leases = [lease_of(CODE, 9, mean_us=SECOND, lease_s=180.0, beat_s=20.0, account=account) for account in accounts]
    worker = Worker(*leases, executors=len(leases))
    for record in worker.state.facts.leases.values():
        data = bytes(INLINE_RESULT_BYTES + 1) if record.lease.account == "large" else b""
        if record.lease.account != "idle":
            record.finished([TaskResult(0, "ok", 1_000, data)], worker.now)
    return worker


def test_of_several_publications_the_one_that_uploads_nothing_names_the_other_leases() -> None:
    worker = working_for("large", "small", "idle")
    *published, other = worker.state.facts.leases.values()
    worker.handle(on.TimePassed(), after_us=SECOND)
    small, large = worker.of(do.Publish)
    assert small.others is not None
    assert [ref.lease_id for ref in small.others] == [other.lease.lease_id]
    assert (small.uploads_for, large.uploads_for, large.others) == (None, "large", [])
    assert [each.publications[0].lease_id for each in (large, small)] == [each.lease.lease_id for each in published]


def test_publications_move_no_beat_while_large_results_of_another_lease_are_uploaded() -> None:
    """Only beats renew that lease meanwhile. Without them it would expire, and its tasks would run again."""
    worker = working_for("large", "small")
    worker.handle(on.TimePassed(), after_us=SECOND)
    large, small = worker.state.facts.leases
    worker.handle(on.Published([small], [], False, 1_000))
    worker.state.facts.leases[small].finished([TaskResult(1, "ok", 1_000, b"")], worker.now)
    assert beats_after(worker, 18 * SECOND) == []
    (publish,) = worker.of(do.Publish)
    assert publish.others == []
    assert [ref.lease_id for ref in beats_after(worker, 2 * SECOND)] == [large, small]
