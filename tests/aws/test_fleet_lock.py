"""FleetLock: among all processes, one at a time."""

from collections.abc import Callable

import pytest

from cloudpar_master.adapters.aws.fleet_lock import HELD_S, FleetLock
from cloudpar_master.adapters.aws.package_store import DynamoPackageStore
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.core.shortage import NO_SHORTAGE, Shortage
from support.clock import SetClock
from support.stores import Stores

Process = Callable[[], FleetLock]


@pytest.fixture
def process(stores: Stores, clock: SetClock) -> Process:
    """Make the turn as a further process has it."""
    packages = stores.packages
    assert isinstance(packages, DynamoPackageStore)
    return lambda: FleetLock(packages._table, clock, RandomIds(), 86_400.0)


def test_only_one_process_has_the_turn(process: Process) -> None:
    one, other = process(), process()
    assert one.take()
    assert not other.take()
    one.release()
    assert other.take()


def test_the_turn_of_a_process_that_died_ends(process: Process, clock: SetClock) -> None:
    assert process().take()
    clock.move(HELD_S - 1)
    assert not process().take()
    clock.move(2)
    assert process().take()


def test_a_process_ends_no_turn_of_another_one(process: Process, clock: SetClock) -> None:
    slow, other = process(), process()
    assert slow.take()
    clock.move(HELD_S + 1)
    assert other.take()
    slow.release()
    assert not process().take()


def test_a_shortage_is_found_by_all_processes_and_stays_while_turns_come_and_go(process: Process) -> None:
    assert process().shortage() == NO_SHORTAGE
    shortage = Shortage(since=5.0, working=2, pauses=3, template="lt-1:4")
    process().note(shortage)
    one = process()
    assert one.take()
    assert process().shortage() == shortage
    one.release()
    assert process().shortage() == shortage


def test_while_the_fleet_pauses_no_process_gets_the_turn(process: Process, clock: SetClock) -> None:
    process().note(Shortage(since=0.0, pauses=1, resumes_at=clock.now() + 60))
    assert not process().take()
    clock.move(60)
    assert process().take()


def test_a_shortage_that_ends_ends_its_pause(process: Process, clock: SetClock) -> None:
    process().note(Shortage(since=0.0, pauses=1, resumes_at=clock.now() + 60))
    process().note(NO_SHORTAGE)
    assert process().take()
