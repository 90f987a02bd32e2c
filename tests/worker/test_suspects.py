"""Chunks that may take their worker along are run one at a time."""

from cloudpar_protocol.worker_messages import LeaseView
from cloudpar_worker import instructions as do
from cloudpar_worker import stimuli as on
from worker.driven import CODE, Worker
from worker.leases import lease_of


def returned(worker: Worker) -> list[str]:
    return [item.lease_id for each in worker.of(do.GiveBackTasks) for item in each.returns]


def fed(worker: Worker) -> list[str]:
    return [each.lease.lease_id for each in worker.of(do.Feed)]


def test_one_suspect_is_kept_and_begins_when_the_others_are_safe() -> None:
    once, suspect, worst = (lease_of(CODE, 1, attempt=attempt) for attempt in (2, 3, 4))
    worker = Worker(once, suspect, worst, executors=2)
    assert returned(worker) == [suspect.lease_id]
    assert fed(worker) == [once.lease_id]
    worker.hear(on.GivenBack([suspect.lease_id]))
    assert fed(worker) == [worst.lease_id]


def test_what_runs_is_not_given_back() -> None:
    suspect, worst = lease_of(CODE, 1, attempt=3), lease_of(CODE, 1, attempt=4)
    worker = Worker(suspect, executors=2)
    assert fed(worker) == [suspect.lease_id]
    worker.hear(on.Retrieved([worst]))
    assert (returned(worker), fed(worker)) == ([worst.lease_id], [])


def test_nothing_joins_it_until_its_results_are_safe() -> None:
    suspect = lease_of(CODE, 1, attempt=3)
    worker = Worker(suspect, executors=4)
    assert worker.of(do.Retrieve) == []
    worker.done(0)
    assert len(worker.published) == 1
    assert worker.of(do.Retrieve) == []
    worker.hear(on.Published([suspect.lease_id], [LeaseView(lease_id=suspect.lease_id, state="finished")], False, 1))
    assert len(worker.of(do.Retrieve)) == 1


def test_one_loss_happens_to_any_chunk() -> None:
    worker = Worker(*(lease_of(CODE, 1, attempt=2) for _ in range(2)), executors=2)
    assert (returned(worker), len(fed(worker))) == ([], 2)
