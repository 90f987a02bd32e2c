"""Turn: among all processes, one at a time."""

from collections.abc import Callable

import pytest

from cloudpar_master.adapters.aws.package_store import DynamoPackageStore
from cloudpar_master.adapters.aws.turn import TURN_S, Turn
from cloudpar_master.adapters.system import RandomIds
from master.stores import SetClock, Stores

Process = Callable[[], Turn]


@pytest.fixture
def process(stores: Stores, clock: SetClock) -> Process:
    """Make the turn as a further process has it."""
    packages = stores.packages
    assert isinstance(packages, DynamoPackageStore)
    return lambda: Turn(packages._table, clock, RandomIds(), 86_400.0)


def test_only_one_process_has_the_turn(process: Process) -> None:
    one, other = process(), process()
    assert one.take()
    assert not other.take()
    one.release()
    assert other.take()


def test_the_turn_of_a_process_that_died_ends(process: Process, clock: SetClock) -> None:
    assert process().take()
    clock.move(TURN_S - 1)
    assert not process().take()
    clock.move(2)
    assert process().take()


def test_a_process_ends_no_turn_of_another_one(process: Process, clock: SetClock) -> None:
    slow, other = process(), process()
    assert slow.take()
    clock.move(TURN_S + 1)
    assert other.take()
    slow.release()
    assert not process().take()
