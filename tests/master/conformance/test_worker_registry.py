"""WorkerRegistry: which workers there are, and what they reported of themselves."""

from cloudpar_master.ports import Fit, WorkerRecord
from support.clock import SetClock
from support.stores import Stores

MEMORY_S = 60.0
FIT = Fit(("3.11", "3.12"), ("p1", "p2"), refuses=("ann", "bob"))


def live(stores: Stores, clock: SetClock) -> dict[str, WorkerRecord]:
    clock.move(10)  # for longer than a registry may show an earlier state
    return {worker.worker_id: worker for worker in stores.registry.workers(clock.now() - MEMORY_S)}


def test_a_worker_is_found_as_it_last_reported(stores: Stores, clock: SetClock) -> None:
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 4))
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 4, FIT))
    found = live(stores, clock)["w"]
    assert (found.host, found.executors, found.fit) == ("host", 4, FIT)


def test_a_worker_that_sent_no_request_for_long_is_gone(stores: Stores, clock: SetClock) -> None:
    stores.registry.note(WorkerRecord("gone", clock.now()))
    clock.move(MEMORY_S)
    stores.registry.note(WorkerRecord("here", clock.now()))
    assert set(live(stores, clock)) == {"here"}


def test_beats_keep_a_worker_and_what_it_reported(stores: Stores, clock: SetClock) -> None:
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 4, FIT))
    for _ in range(20):
        clock.move(MEMORY_S / 3)
        stores.registry.beat("w", clock.now())
    found = live(stores, clock)["w"]
    assert (found.host, found.fit) == ("host", FIT)


def test_a_beat_after_a_long_silence_counts_at_once(stores: Stores, clock: SetClock) -> None:
    """Also shortly after others have looked, when the adapter on AWS does not read its table again."""
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 4, FIT))
    clock.move(MEMORY_S * 2)
    assert stores.registry.workers(clock.now() - MEMORY_S) == []
    stores.registry.beat("w", clock.now())
    assert [worker.worker_id for worker in stores.registry.workers(clock.now() - MEMORY_S)] == ["w"]


def test_a_beat_of_an_unknown_worker_excludes_nothing(stores: Stores, clock: SetClock) -> None:
    """It came before a restart. A registry that knows it takes it for one that can run everything."""
    stores.registry.beat("unknown", clock.now())
    assert all(worker.fit == Fit() for worker in live(stores, clock).values())


def test_a_worker_that_left_is_gone_at_once(stores: Stores, clock: SetClock) -> None:
    for name in ("leaves", "stays"):
        stores.registry.note(WorkerRecord(name, clock.now(), "host", 4, FIT))
    assert set(live(stores, clock)) == {"leaves", "stays"}
    stores.registry.leave("leaves")
    assert {worker.worker_id for worker in stores.registry.workers(clock.now() - MEMORY_S)} == {"stays"}


def test_a_late_beat_does_not_bring_a_worker_back_that_left(stores: Stores, clock: SetClock) -> None:
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 4, FIT))
    stores.registry.leave("w")
    clock.move(MEMORY_S / 2)
    stores.registry.beat("w", clock.now())
    assert live(stores, clock) == {}


def test_a_late_retrieval_does_not_bring_a_worker_back_that_left(stores: Stores, clock: SetClock) -> None:
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 4, FIT))
    stores.registry.leave("w")
    clock.move(MEMORY_S / 2)
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 4, FIT))
    stores.registry.beat("w", clock.now())
    assert {worker.worker_id for worker in stores.registry.workers(0.0)} == set()
    assert live(stores, clock) == {}


def test_a_worker_that_is_not_known_may_leave(stores: Stores, clock: SetClock) -> None:
    stores.registry.leave("unknown")
    assert live(stores, clock) == {}


def test_another_process_soon_sees_that_a_worker_left(stores: Stores, others: Stores, clock: SetClock) -> None:
    """The embedded master is one process with its registry in memory: another process never knew the worker."""
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 4, FIT))
    live(others, clock)
    stores.registry.leave("w")
    assert live(others, clock) == {}


def test_a_registry_that_was_not_restarted_knows_all(stores: Stores, clock: SetClock) -> None:
    assert stores.registry.knows_all(clock.now())


def test_the_newest_workers_are_those_that_were_noted_just_now(stores: Stores, clock: SetClock) -> None:
    assert stores.registry.workers(0.0) == []
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 1, FIT))
    assert [worker.fit for worker in stores.registry.workers(0.0, newest=True)] == [FIT]
