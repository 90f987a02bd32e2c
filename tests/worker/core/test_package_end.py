"""What a worker does when a package ends, everywhere or only here."""

import pytest

from cloudpar_protocol.worker_messages import LeaseView
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.core.master_policy import PUBLISH_BYTES
from support.leases import lease_of
from worker.driven import CODE, Worker


def test_the_end_of_a_package_applies_to_all_its_leases() -> None:
    first = lease_of(CODE, 1, mean_us=1_000)
    second = lease_of(CODE, 10_000, package_id=first.package_id, start=1)
    worker = Worker(first, second)
    worker.done(0)
    assert worker.state.facts.leases[second.lease_id].untouched
    worker.handle(on.Extended([LeaseView(lease_id=first.lease_id, state="ended")], False))
    assert not worker.state.facts.leases[second.lease_id].untouched
    assert do.Kill(0) in worker.instructions  # the executor had started a task of the second lease


def test_a_packages_last_results_at_a_worker_are_published_at_once() -> None:
    short, long = lease_of(CODE, 2, mean_us=1_000), lease_of(CODE, 100, mean_us=60_000)
    worker = Worker(short, long)
    worker.done(0)
    assert worker.published == []
    worker.done(1)
    worker.handle(on.TimePassed())
    assert worker.published == [(short.package_id, 2)]


def test_results_are_collected_while_tasks_of_their_package_are_left() -> None:
    first = lease_of(CODE, 2, mean_us=60_000)
    second = lease_of(CODE, 100, package_id=first.package_id, start=2, mean_us=60_000)
    worker = Worker(first, second)
    worker.done(0)
    worker.done(1)
    worker.handle(on.TimePassed())
    assert worker.published == []
    worker.handle(on.TimePassed(), after_us=200_000)
    assert worker.published == [(first.package_id, 2)]


@pytest.mark.parametrize("holds", [True, False])
def test_large_results_of_several_leases_are_published_together_while_tasks_run(holds: bool) -> None:
    """If requests cost money, the results wait for 0.2 s or for the last task."""
    first = lease_of(CODE, 1, mean_us=60_000)
    others = [lease_of(CODE, 1, package_id=first.package_id, start=start, mean_us=60_000) for start in range(1, 6)]
    worker = Worker(first, *others)
    worker.state.facts.holds = holds
    for index in range(4):
        assert worker.published == []
        result = ExecutorResult(index, "ok", 60_000, bytes(PUBLISH_BYTES // 4))
        worker.handle(on.Results(0, [result], worker.now), after_us=1_000)
    assert worker.published == ([(first.package_id, 1)] * 4 if holds else [])
