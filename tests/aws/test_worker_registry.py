"""DynamoWorkerRegistry: instances of the master that learn of a worker at different times."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_master.adapters.aws.table import put
from cloudpar_master.adapters.aws.worker_registry import FRESH_S, LOOK_S, DynamoWorkerRegistry
from cloudpar_master.ports import Fit, WorkerRecord
from master.services.agent import Agent
from support.clock import SetClock
from support.stores import Stores
from support.world import POLICY, world_on

from .stores import on_moto

LACKS, FITS = Fit(("3.11",), ("p1",)), Fit(("3.11",))


@pytest.fixture
def others(tmp_path: Path, clock: SetClock, stores: Stores) -> Iterator[Stores]:
    """Another instance of the master."""
    with on_moto(tmp_path, clock) as others:
        yield others


def report(stores: Stores, clock: SetClock, fit: Fit) -> None:
    clock.move(LOOK_S / 10)
    stores.registry.note(WorkerRecord("w", clock.now(), "host", 1, fit))


def fits(stores: Stores, *, newest: bool = False) -> list[Fit]:
    return [worker.fit for worker in stores.registry.workers(0.0, newest=newest)]


def test_an_instance_uses_what_a_worker_reported_to_it_last(stores: Stores, clock: SetClock) -> None:
    assert fits(stores) == []
    report(stores, clock, LACKS)
    assert fits(stores) == [LACKS]
    report(stores, clock, FITS)
    assert fits(stores) == [FITS]


def test_an_instance_may_read_what_others_noted_just_now(stores: Stores, others: Stores, clock: SetClock) -> None:
    report(stores, clock, LACKS)
    assert fits(stores) == [LACKS]
    report(others, clock, FITS)
    assert fits(stores) == [LACKS]
    assert fits(stores, newest=True) == [FITS]


def test_a_worker_that_returns_to_an_earlier_state_is_written_again(
    stores: Stores, others: Stores, clock: SetClock
) -> None:
    """The worker reports a state to one instance, another to the other instance, and the first to the first again."""
    report(stores, clock, LACKS)
    report(others, clock, FITS)
    report(stores, clock, LACKS)
    assert fits(stores, newest=True) == [LACKS]
    report(stores, clock, LACKS)
    assert fits(others, newest=True) == [LACKS]
    assert clock.now() < stores.registry.workers(0.0)[0].seen_at + FRESH_S


def test_a_row_that_cannot_be_read_hides_no_other_worker(
    stores: Stores, others: Stores, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    report(stores, clock, FITS)
    stores.registry.note(WorkerRecord("damaged", clock.now(), "host", 1, FITS))
    registry = stores.registry
    assert isinstance(registry, DynamoWorkerRegistry)
    registry._table.write(put(registry._row(WorkerRecord("damaged", clock.now())) | {"fit": "\x00"}))
    assert [worker.worker_id for worker in others.registry.workers(0.0)] == ["w"]
    assert "the row of worker damaged cannot be read" in caplog.text


def test_a_worker_that_left_by_another_instance_does_not_come_back(
    stores: Stores, others: Stores, clock: SetClock
) -> None:
    report(stores, clock, FITS)
    others.registry.leave("w")
    assert fits(stores, newest=True) == fits(stores) == []


def test_a_late_retrieval_at_another_instance_does_not_bring_a_worker_back_that_left(
    stores: Stores, others: Stores, clock: SetClock
) -> None:
    report(stores, clock, FITS)
    stores.registry.leave("w")
    report(others, clock, LACKS)
    others.registry.beat("w", clock.now() + FRESH_S)
    assert fits(others, newest=True) == fits(stores, newest=True) == []


def test_a_beat_does_not_hide_what_a_worker_reported_to_another_instance(
    stores: Stores, others: Stores, clock: SetClock
) -> None:
    report(others, clock, LACKS)
    stores.registry.beat("w", clock.now() + 1)
    assert fits(stores) == fits(stores, newest=True) == [LACKS]


def test_a_package_does_not_fail_while_another_instance_knows_a_worker_for_it(
    stores: Stores, others: Stores, clock: SetClock
) -> None:
    here, there = world_on(stores, clock), world_on(others, clock)
    ann, wrong = here.account(), Agent(here, "wrong")
    package_id = here.start(ann, 10, python="3.12")
    assert wrong.take() == []
    assert here.head(package_id).life.stranded_at is not None
    clock.move(POLICY.grace_s)
    here.backend.registry.workers(0.0)
    clock.move(LOOK_S / 2)
    (lease,) = Agent(there, "right", "3.12").take()
    assert lease.package_id == package_id
    assert wrong.take() == []
    assert here.head(package_id).life.state == "running"
