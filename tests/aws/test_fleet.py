"""AutoScalingFleet wakes a group at zero instances once."""

from typing import Any

import pytest

from cloudpar_master.adapters.aws.fleet import LOOK_S, AutoScalingFleet
from master.stores import SetClock

from .stubs import Stubber, offline, stubbed


def group(stub: Stubber, desired: int, largest: int = 4) -> None:
    found: Any = {
        "AutoScalingGroupName": "g", "MinSize": 0, "MaxSize": largest, "DesiredCapacity": desired,
        "DefaultCooldown": 0, "AvailabilityZones": [], "HealthCheckType": "EC2", "CreatedTime": 0,
    }  # fmt: skip
    response = {"AutoScalingGroups": [found]}
    stub.add_response("describe_auto_scaling_groups", response, {"AutoScalingGroupNames": ["g"]})


def woken(stub: Stubber) -> None:
    expected = {"AutoScalingGroupName": "g", "DesiredCapacity": 1, "HonorCooldown": False}
    stub.add_response("set_desired_capacity", {}, expected)


def test_a_group_at_zero_is_woken_once(clock: SetClock) -> None:
    client = offline().autoscaling
    fleet = AutoScalingFleet(lambda: client, "g", clock)
    with stubbed(client) as stub:
        group(stub, 0)
        woken(stub)
        for _ in range(3):
            fleet.wake()
        clock.move(LOOK_S)
        group(stub, 1)
        fleet.wake()


@pytest.mark.parametrize(("desired", "largest"), [(1, 4), (3, 4), (0, 0)])
def test_a_group_is_never_made_smaller_nor_larger_than_it_may_be(clock: SetClock, desired: int, largest: int) -> None:
    client = offline().autoscaling
    with stubbed(client) as stub:
        group(stub, desired, largest)
        AutoScalingFleet(lambda: client, "g", clock).wake()


def test_a_group_that_cannot_be_woken_does_not_stop_a_start(clock: SetClock, caplog: pytest.LogCaptureFixture) -> None:
    client = offline().autoscaling
    fleet = AutoScalingFleet(lambda: client, "g", clock)
    with stubbed(client) as stub:
        stub.add_client_error("describe_auto_scaling_groups", "Throttling")
        fleet.wake()
        assert "could not be woken" in caplog.text
        group(stub, 0)  # the next start tries again
        woken(stub)
        fleet.wake()
