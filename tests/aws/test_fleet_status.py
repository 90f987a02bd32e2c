"""GroupWatch tells how many instances there are, and why there are no more."""

from typing import Any

import pytest

from cloudpar_master.adapters.aws.fleet_status import ACTIVITIES, LOOK_S, GroupWatch
from cloudpar_protocol.client_messages import FleetStatus
from master.stores import SetClock

from .stubs import Stubber, offline, stubbed

FULL = "We currently do not have sufficient c7g.large capacity."


def group(stub: Stubber, desired: int, *states: str) -> None:
    instances: list[Any] = [
        {
            "InstanceId": f"i-{number}", "AvailabilityZone": "a", "LifecycleState": state, "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": False,
        }
        for number, state in enumerate(states)
    ]  # fmt: skip
    found: Any = {
        "AutoScalingGroupName": "g", "MinSize": 0, "MaxSize": 4, "DesiredCapacity": desired, "DefaultCooldown": 0,
        "AvailabilityZones": [], "HealthCheckType": "EC2", "CreatedTime": 0, "Instances": instances,
    }  # fmt: skip
    answer = {"AutoScalingGroups": [found]}
    stub.add_response("describe_auto_scaling_groups", answer, {"AutoScalingGroupNames": ["g"]})


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


def watched(clock: SetClock) -> tuple[GroupWatch, Any]:
    client = offline().autoscaling
    return GroupWatch(lambda: client, "g", clock), client


def test_a_complete_group_is_described_once_in_a_while(clock: SetClock) -> None:
    watch, client = watched(clock)
    with stubbed(client) as stub:
        group(stub, 1, "InService")
        assert [watch.status() for _ in range(3)] == [FleetStatus(running=1)] * 3
        clock.move(LOOK_S)
        group(stub, 0, "Terminating")
        assert watch.status() == FleetStatus()


def test_starting_instances_are_counted(clock: SetClock) -> None:
    watch, client = watched(clock)
    with stubbed(client) as stub:
        group(stub, 3, "InService", "Pending", "Terminating")
        activities(stub, ("Launching a new EC2 instance: i-1", "InProgress", "-"))
        assert watch.status() == FleetStatus(running=1, starting=2)


@pytest.mark.parametrize("code", ["Failed", "Cancelled", "WaitingForSpotInstanceId"])
def test_the_reason_why_no_instance_starts_is_shown(clock: SetClock, code: str) -> None:
    watch, client = watched(clock)
    with stubbed(client) as stub:
        group(stub, 2)
        activities(stub, ("Terminating EC2 instance: i-9", "Failed", "other"), ("Launching one.", code, FULL))
        assert watch.status() == FleetStatus(starting=2, message=FULL)


def test_an_old_failure_is_not_shown(clock: SetClock) -> None:
    watch, client = watched(clock)
    with stubbed(client) as stub:
        group(stub, 2, "Pending")
        activities(stub, ("Launching one.", "Successful", "-"), ("Launching one.", "Failed", FULL))
        assert watch.status() == FleetStatus(starting=2)


def test_a_group_that_cannot_be_described_does_not_stop_a_request(
    clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    watch, client = watched(clock)
    with stubbed(client) as stub:
        stub.add_client_error("describe_auto_scaling_groups", "AccessDenied")
        assert watch.status() is None
        assert watch.status() is None
    assert caplog.text.count("could not be looked at") == 1
