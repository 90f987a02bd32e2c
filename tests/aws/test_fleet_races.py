"""Two processes size the fleet at the same time: wherever one interrupts the other, the fleet never gets smaller."""

from typing import Any

import pytest

from cloudpar_master.adapters.aws.fleet import AutoScalingFleet
from cloudpar_master.adapters.aws.fleet_lock import FleetLock
from cloudpar_master.adapters.aws.package_store import DynamoPackageStore
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.core.fleet_size import HostShape, Work
from support.clock import SetClock
from support.stores import Stores

CHUNK = Work(parts=1, total_us=None, chunks=1)
FEW, MANY = [CHUNK] * 4, [CHUNK] * 100


class Group:
    """Stands in for AWS's client. Before one of its calls, another process decides."""

    def __init__(self) -> None:
        self.desired = 0
        self.sizes = [0]
        self.calls_before = -1
        self.other: AutoScalingFleet | None = None
        self.works: list[Work] = []

    def interrupt(self) -> None:
        self.calls_before -= 1
        if self.calls_before == -1 and self.other is not None:
            self.other.grow(self.works)

    def describe_auto_scaling_groups(self, **_: object) -> dict[str, Any]:
        self.interrupt()
        return {"AutoScalingGroups": [{"DesiredCapacity": self.desired, "MaxSize": 4, "Instances": []}]}

    def set_desired_capacity(self, *, DesiredCapacity: int, **_: object) -> None:  # noqa: N803 - AWS's name
        self.interrupt()
        self.desired = DesiredCapacity
        self.sizes.append(DesiredCapacity)


class Interrupted(FleetLock):
    """The turn, whose calls may be interrupted, too."""

    group: Group

    def take(self) -> bool:
        self.group.interrupt()
        return super().take()

    def release(self) -> None:
        self.group.interrupt()
        super().release()


@pytest.mark.parametrize("calls_before", range(5))
@pytest.mark.parametrize(("first", "second"), [(FEW, MANY), (MANY, FEW)])
def test_a_decision_between_two_calls_of_another_one_makes_the_fleet_no_smaller(
    stores: Stores, clock: SetClock, calls_before: int, first: list[Work], second: list[Work]
) -> None:
    packages, group = stores.packages, Group()
    assert isinstance(packages, DynamoPackageStore)
    client: Any = group

    def process(kind: type[FleetLock]) -> AutoScalingFleet:
        turn = kind(packages._table, clock, RandomIds(), 86_400.0)
        if isinstance(turn, Interrupted):
            turn.group = group
        return AutoScalingFleet(lambda: client, "g", clock, turn, HostShape(2, 2))

    one, other, timer = process(Interrupted), process(FleetLock), process(FleetLock)
    group.other, group.works, group.calls_before = other, second, calls_before
    one.grow(first)
    assert group.sizes == sorted(group.sizes)
    assert group.calls_before < 0, "the other process has decided"
    timer.grow(first + second)
    assert group.desired == 4
