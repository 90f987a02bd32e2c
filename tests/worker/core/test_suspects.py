"""Chunks that may kill their worker run one at a time."""

from cloudpar_protocol.worker_messages import LeaseView
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.facts import PAUSE_US
from support.leases import lease_of
from worker.driven import CODE, Worker


def returned(worker: Worker) -> list[str]:
    return [item.lease_id for item in worker.returned]


def fed(worker: Worker) -> list[str]:
    return [lease_id for _, lease_id in worker.fed]


def test_one_suspect_is_kept_and_starts_after_all_others_are_given_back() -> None:
    """Any of the chunks may have killed the worker, so none runs beside the suspect."""
    once, suspect, worst = (lease_of(CODE, 1, attempt=attempt) for attempt in (2, 3, 4))
    worker = Worker(once, suspect, worst, executors=2)
    assert (returned(worker), fed(worker)) == ([suspect.lease_id, once.lease_id], [])
    assert [item.attempt for item in worker.returned] == [3, 2]
    worker.handle(on.GivenBack([suspect.lease_id]))
    assert fed(worker) == []
    worker.handle(on.GivenBack([once.lease_id]))
    assert fed(worker) == [worst.lease_id]


def test_suspects_that_come_beside_running_tasks_are_given_back() -> None:
    """The worker does not retrieve it again at once, and feeds nothing else before the master has it back."""
    running, once, suspect = (lease_of(CODE, 1, attempt=attempt) for attempt in (1, 2, 3))
    worker = Worker(running, executors=2)
    assert fed(worker) == [running.lease_id]
    worker.handle(on.Retrieved([once, suspect]))
    assert (returned(worker), fed(worker)) == ([suspect.lease_id], [])
    worker.handle(on.GivenBack([suspect.lease_id]))
    assert (fed(worker), worker.of(do.Retrieve)) == ([once.lease_id], [])


def test_after_each_suspect_given_back_the_next_retrieval_waits_longer() -> None:
    """Even a worker that is always busy has nothing else in the end, and can run the suspect."""
    running, *suspects = (lease_of(CODE, 1, attempt=attempt) for attempt in (1, 3, 3, 3))
    worker = Worker(running, executors=2)
    for times, suspect in zip((1, 2, 4), suspects, strict=True):
        worker.handle(on.Retrieved([suspect]))
        worker.handle(on.GivenBack([suspect.lease_id]))
        worker.handle(on.TimePassed(), times * PAUSE_US - 1_001)
        assert worker.of(do.Retrieve) == []
        worker.handle(on.TimePassed(), 1)
        assert len(worker.of(do.Retrieve)) == 1


def test_a_suspect_is_retrieved_at_once_when_no_other_task_runs() -> None:
    running, suspect = (lease_of(CODE, 1, attempt=attempt) for attempt in (1, 3))
    worker = Worker(running, executors=2)
    worker.handle(on.Retrieved([suspect]))
    worker.handle(on.GivenBack([suspect.lease_id]))
    worker.done(0)
    worker.handle(on.Published([running.lease_id], [LeaseView(lease_id=running.lease_id, state="finished")], False, 1))
    assert len(worker.of(do.Retrieve)) == 1


def test_a_chunk_without_suspects_ends_the_pause() -> None:
    running, suspect, more, later = (lease_of(CODE, 1, attempt=attempt) for attempt in (1, 3, 1, 3))
    worker = Worker(running, executors=4)
    worker.handle(on.Retrieved([suspect]))
    worker.handle(on.GivenBack([suspect.lease_id]))
    worker.handle(on.TimePassed(), PAUSE_US)
    worker.handle(on.Retrieved([more]))
    worker.handle(on.Retrieved([later]))
    worker.handle(on.GivenBack([later.lease_id]))
    worker.handle(on.TimePassed(), PAUSE_US)
    assert len(worker.of(do.Retrieve)) == 1


def test_running_tasks_are_not_given_back_for_a_suspect() -> None:
    suspect, worst = lease_of(CODE, 1, attempt=3), lease_of(CODE, 1, attempt=4)
    worker = Worker(suspect, executors=2)
    assert fed(worker) == [suspect.lease_id]
    worker.handle(on.Retrieved([worst]))
    assert (returned(worker), fed(worker)) == ([worst.lease_id], [])


def test_nothing_is_retrieved_until_the_master_has_a_suspects_results() -> None:
    suspect = lease_of(CODE, 1, attempt=3)
    worker = Worker(suspect, executors=4)
    assert worker.of(do.Retrieve) == []
    worker.done(0)
    assert len(worker.published) == 1
    assert worker.of(do.Retrieve) == []
    worker.handle(on.Published([suspect.lease_id], [LeaseView(lease_id=suspect.lease_id, state="finished")], False, 1))
    assert len(worker.of(do.Retrieve)) == 1


def test_a_chunk_that_was_lost_once_is_no_suspect() -> None:
    worker = Worker(*(lease_of(CODE, 1, attempt=2) for _ in range(2)), executors=2)
    assert (returned(worker), len(fed(worker))) == ([], 2)


def test_of_two_suspects_one_that_no_other_worker_can_run_is_kept() -> None:
    """Otherwise a worker that lacks something for two packages would set them aside in turn, and run neither."""
    worse, only_here = lease_of(CODE, 1, attempt=4, elsewhere=True), lease_of(CODE, 1, attempt=3)
    worker = Worker(worse, only_here)
    assert returned(worker) == [worse.lease_id]
    worker.handle(on.GivenBack([worse.lease_id]))
    assert fed(worker) == [only_here.lease_id]
