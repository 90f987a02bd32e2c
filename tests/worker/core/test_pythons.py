"""Executors have the lease's version of Python, if it is here."""

from cloudpar_protocol.payloads import TaskCode
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from support.leases import lease_of
from worker.driven import CODE, Worker

PYTHONS = ("3.13", "3.12")


def spawned(worker: Worker) -> list[tuple[int, str]]:
    return [(spawn.executor_id, spawn.python) for spawn in worker.of(do.Spawn)]


def test_executors_start_with_the_first_version_of_python() -> None:
    worker = Worker(pythons=PYTHONS)
    assert [executor.python for executor in worker.state.facts.executors.values()] == ["3.13"]


def test_an_executor_of_another_python_is_replaced_by_one_of_the_leases() -> None:
    lease = lease_of(CODE, 1, python="3.12")
    worker = Worker(lease, pythons=PYTHONS)
    assert worker.of(do.Kill) == [do.Kill(0)]
    assert spawned(worker) == [(1, "3.12")]
    worker.handle(on.ExecutorGone(0, -9))
    assert spawned(worker) == []
    worker.handle(on.ExecutorReady(1))
    assert worker.fed == [(1, lease.lease_id)]


def test_tasks_without_pickles_run_on_any_version_of_python() -> None:
    lease = lease_of(TaskCode("1" * 64, reference="math:factorial"), 1, python="2.7", codec="msgpack")
    worker = Worker(lease, pythons=PYTHONS)
    assert worker.fed == [(0, lease.lease_id)]


def test_an_executor_is_replaced_only_after_its_task() -> None:
    worker = Worker(lease_of(CODE, 1, python="3.13"), pythons=PYTHONS)
    other = lease_of(CODE, 1, python="3.12")
    worker.handle(on.Retrieved([other]))
    worker.handle(on.TimePassed(), after_us=10_000_000)
    assert worker.of(do.Kill) == []
    worker.done(0)
    assert spawned(worker) == [(1, "3.12")]


def test_no_more_executors_are_replaced_than_there_are_tasks() -> None:
    worker = Worker(lease_of(CODE, 1, python="3.12"), executors=4, pythons=PYTHONS)
    assert spawned(worker) == [(4, "3.12")]


def test_clients_of_two_versions_keep_their_executors() -> None:
    worker = Worker(lease_of(CODE, 1, python="3.12"), executors=2, pythons=PYTHONS)
    worker.handle(on.ExecutorReady(2))
    worker.done(0, executor_id=2)
    for python, executor_id in (("3.13", 1), ("3.12", 2)) * 3:
        lease = lease_of(CODE, 1, python=python)
        worker.handle(on.Retrieved([lease]))
        assert (worker.fed, spawned(worker)) == ([(executor_id, lease.lease_id)], [])
        worker.done(0, executor_id)


def test_an_executor_serves_its_own_version_for_a_while_before_it_is_replaced() -> None:
    first = lease_of(CODE, 1, python="3.13", mean_us=1_000)
    other, more = lease_of(CODE, 1, python="3.12"), lease_of(CODE, 10_000, python="3.13", mean_us=1_000)
    worker = Worker(first, pythons=PYTHONS)
    worker.handle(on.Retrieved([other, more]))
    assert more.lease_id in [lease_id for _, lease_id in worker.fed]
    worker.handle(on.TimePassed(), after_us=300_000)
    assert worker.fed == []


def test_the_refusal_of_a_version_of_python_names_those_that_are_here() -> None:
    lease = lease_of(CODE, 5, python="3.14")
    worker = Worker(lease, pythons=("3.13", "3.11", "3.12"))
    ((publication,),) = [publish.publications for publish in worker.of(do.Publish)]
    assert (publication.refused, publication.closes, publication.results) == ("python", True, [])
    assert publication.message == (
        "the package was made by Python 3.14, this worker's executors run Python 3.11, 3.12 or 3.13: "
        "use Python 3.11, 3.12 or 3.13 at the client, or start workers with Python 3.14"
    )


def test_a_version_whose_interpreter_does_not_start_counts_as_missing() -> None:
    lease = lease_of(CODE, 5, python="3.12")
    worker = Worker(lease, pythons=PYTHONS)
    worker.handle(on.ExecutorGone(0, -9))
    worker.handle(on.ExecutorGone(1, None))
    worker.handle(on.PythonFailed("3.12"))
    assert worker.published == [(lease.package_id, 0)]
    worker.handle(on.TimePassed(), after_us=10_000_000)
    assert spawned(worker) == [(2, "3.13")]
