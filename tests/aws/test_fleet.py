"""AutoScalingFleet wakes a group at zero instances once, and tells how many instances there are, and why no more."""

from collections.abc import Iterator
from typing import Any

import pytest

from cloudpar_master.adapters.aws.fleet import ACTIVITIES, LOOK_S, AutoScalingFleet
from cloudpar_protocol.client_messages import FleetStatus
from master.stores import SetClock

from .stubs import Stubber, offline, stubbed

FULL = "We currently do not have sufficient c7g.large capacity."


@pytest.fixture
def fleet(clock: SetClock) -> AutoScalingFleet:
    return AutoScalingFleet(lambda: offline().autoscaling, "g", clock)


@pytest.fixture
def stub() -> Iterator[Stubber]:
    with stubbed(offline().autoscaling) as stub:
        yield stub


def group(stub: Stubber, desired: int, *states: str, largest: int = 4) -> None:
    instances: list[Any] = [
        {
            "InstanceId": f"i-{number}", "AvailabilityZone": "a", "LifecycleState": state, "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": False,
        }
        for number, state in enumerate(states)
    ]  # fmt: skip
    found: Any = {
        "AutoScalingGroupName": "g", "MinSize": 0, "MaxSize": largest, "DesiredCapacity": desired, "DefaultCooldown": 0,
        "AvailabilityZones": [], "HealthCheckType": "EC2", "CreatedTime": 0, "Instances": instances,
    }  # fmt: skip
    answer = {"AutoScalingGroups": [found]}
    stub.add_response("describe_auto_scaling_groups", answer, {"AutoScalingGroupNames": ["g"]})


def woken(stub: Stubber) -> None:
    expected = {"AutoScalingGroupName": "g", "DesiredCapacity": 1, "HonorCooldown": False}
    stub.add_response("set_desired_capacity", {}, expected)


def activities(stub: Stubber, *made: tuple[str, str, str]) -> None:
    found: list[Any] = [
        {
            "ActivityId": str(number), "AutoScalingGroupName": "g", "Cause": "c", "StartTime": 0,
            "Description": description, "StatusCode": code, "StatusMessage": message,
        }
        for number, (description, code, message) in enumerate(made)
    ]  # fmt: skip
    expected = {"AutoScalingGroupName": "g", "MaxRecords": ACTIVITIES}
    stub.add_response("describe_scaling_activities", {"Activities": found}, expected)


def test_a_group_at_zero_is_woken_once(fleet: AutoScalingFleet, stub: Stubber, clock: SetClock) -> None:
    group(stub, 0)
    woken(stub)
    for _ in range(3):
        fleet.wake()
    clock.move(LOOK_S)
    group(stub, 1)
    fleet.wake()


@pytest.mark.parametrize(("desired", "largest"), [(1, 4), (3, 4), (0, 0)])
def test_a_group_is_never_made_smaller_nor_larger_than_it_may_be(
    fleet: AutoScalingFleet, stub: Stubber, desired: int, largest: int
) -> None:
    group(stub, desired, largest=largest)
    fleet.wake()


def test_a_group_that_cannot_be_woken_does_not_stop_a_start(
    fleet: AutoScalingFleet, stub: Stubber, caplog: pytest.LogCaptureFixture
) -> None:
    stub.add_client_error("describe_auto_scaling_groups", "Throttling")
    fleet.wake()
    assert "could not be woken" in caplog.text
    group(stub, 0)  # the next start tries again
    woken(stub)
    fleet.wake()


def test_a_complete_group_is_described_once_in_a_while(fleet: AutoScalingFleet, stub: Stubber, clock: SetClock) -> None:
    group(stub, 1, "InService")
    assert [fleet.status() for _ in range(3)] == [FleetStatus(running=1)] * 3
    clock.move(LOOK_S)
    group(stub, 0, "Terminating")
    assert fleet.status() == FleetStatus()


def test_starting_instances_are_counted(fleet: AutoScalingFleet, stub: Stubber) -> None:
    group(stub, 3, "InService", "Pending", "Terminating")
    activities(stub, ("Launching a new EC2 instance: i-1", "InProgress", "-"))
    assert fleet.status() == FleetStatus(running=1, starting=2)


@pytest.mark.parametrize("code", ["Failed", "Cancelled", "WaitingForSpotInstanceId"])
def test_the_reason_why_no_instance_starts_is_shown(fleet: AutoScalingFleet, stub: Stubber, code: str) -> None:
    group(stub, 2)
    activities(stub, ("Terminating EC2 instance: i-9", "Failed", "other"), ("Launching one.", code, FULL))
    assert fleet.status() == FleetStatus(starting=2, message=FULL)


def test_an_old_failure_is_not_shown(fleet: AutoScalingFleet, stub: Stubber) -> None:
    group(stub, 2, "Pending")
    activities(stub, ("Launching one.", "Successful", "-"), ("Launching one.", "Failed", FULL))
    assert fleet.status() == FleetStatus(starting=2)


def test_a_group_that_cannot_be_described_does_not_stop_a_request(
    fleet: AutoScalingFleet, stub: Stubber, caplog: pytest.LogCaptureFixture
) -> None:
    stub.add_client_error("describe_auto_scaling_groups", "AccessDenied")
    assert fleet.status() is None
    assert fleet.status() is None
    assert caplog.text.count("could not be looked at") == 1
