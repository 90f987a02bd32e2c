"""AutoScalingFleet enlarges its group for the work there is, and tells how many instances run, and why no more do."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cloudpar_master.adapters.aws.fleet import ACTIVITIES, LOOK_S, AutoScalingFleet
from cloudpar_master.core.fleet_size import HostShape, Work
from cloudpar_master.core.shortage import NO_SHORTAGE, Shortage
from cloudpar_master.ports import FleetSize
from cloudpar_protocol.client_messages import FleetStatus
from support.clock import SetClock

from .stubs import Stubber, client_error, offline, stubbed

ONE = Work(parts=1, total_us=None, chunks=1)
SHAPE = HostShape(executors=2, chunks_per_executor=2)
FULL = "We currently do not have sufficient c7g.large capacity."


class Turns:
    """Stands in for the turn: whose it is, and what happens at its start."""

    def __init__(self) -> None:
        self.ours, self.taken = True, False
        self.meanwhile: Callable[[], object] = lambda: None
        self.noted = NO_SHORTAGE

    def take(self) -> bool:
        self.meanwhile()
        self.taken = self.ours
        return self.ours

    def release(self) -> None:
        self.taken = False

    def shortage(self) -> Shortage:
        return self.noted

    def note(self, shortage: Shortage) -> None:
        self.noted = shortage


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def fleet(clock: SetClock, turns: Turns) -> AutoScalingFleet:
    turn: Any = turns
    return AutoScalingFleet(lambda: offline().autoscaling, "g", clock, turn, SHAPE)


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
    launch: Any = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "4"}}
    other: Any = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-2", "Version": "7"}}
    found: Any = {
        "AutoScalingGroupName": "g", "MinSize": 0, "MaxSize": largest, "DesiredCapacity": desired, "DefaultCooldown": 0,
        "AvailabilityZones": [], "HealthCheckType": "EC2", "CreatedTime": 0, "Instances": instances,
        "MixedInstancesPolicy": {"LaunchTemplate": launch | {"Overrides": [{"InstanceType": "x"}, other, other]}},
    }  # fmt: skip
    answer = {"AutoScalingGroups": [found]}
    stub.add_response("describe_auto_scaling_groups", answer, {"AutoScalingGroupNames": ["g"]})


def enlarged(stub: Stubber, desired: int) -> None:
    expected = {"AutoScalingGroupName": "g", "DesiredCapacity": desired, "HonorCooldown": False}
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
    group(stub, 0)
    enlarged(stub, 1)
    for _ in range(3):
        fleet.grow([ONE])
    clock.move(LOOK_S)
    group(stub, 1)
    fleet.grow([ONE])


def test_more_work_enlarges_the_group_at_once(fleet: AutoScalingFleet, stub: Stubber) -> None:
    for desired, wanted, works in ((0, 1, [ONE]), (1, 3, [ONE] * 12), (3, 4, [ONE] * 100)):
        group(stub, desired)
        group(stub, desired)
        enlarged(stub, wanted)
        fleet.grow(works)
    fleet.grow([ONE] * 200)  # there is no look: the group is as large as it may be


@pytest.mark.parametrize(("desired", "largest"), [(1, 4), (3, 4), (0, 0)])
def test_a_group_is_never_made_smaller_nor_larger_than_it_may_be(
    fleet: AutoScalingFleet, stub: Stubber, desired: int, largest: int
) -> None:
    group(stub, desired, largest=largest)
    fleet.grow([ONE])


def test_a_group_without_work_is_not_looked_at(fleet: AutoScalingFleet, stub: Stubber) -> None:
    fleet.grow([])
    fleet.grow([Work(parts=0, total_us=0.0, chunks=0)])


def test_a_process_does_not_undo_what_another_one_has_set_meanwhile(
    fleet: AutoScalingFleet, stub: Stubber, turns: Turns
) -> None:
    group(stub, 0)
    turns.meanwhile = lambda: group(stub, 3)  # another process has had its turn
    fleet.grow([ONE] * 5)
    assert not turns.taken


def test_a_process_that_cannot_take_the_turn_leaves_the_group_alone_for_a_while(
    fleet: AutoScalingFleet, stub: Stubber, turns: Turns, clock: SetClock
) -> None:
    turns.ours = False
    group(stub, 0)
    for _ in range(3):  # as many clients that wait
        fleet.grow([ONE])
    clock.move(LOOK_S)
    turns.ours = True
    group(stub, 0)
    group(stub, 0)
    enlarged(stub, 1)
    fleet.grow([ONE])


@pytest.mark.parametrize("failing", ["describe_auto_scaling_groups", "set_desired_capacity"])
def test_a_group_that_could_not_be_enlarged_is_enlarged_by_the_next_call(
    fleet: AutoScalingFleet, stub: Stubber, turns: Turns, caplog: pytest.LogCaptureFixture, failing: str
) -> None:
    if failing == "set_desired_capacity":
        group(stub, 0)
        group(stub, 0)
    stub.add_client_error(failing, "Throttling")
    fleet.grow([ONE])
    assert "could not be enlarged" in caplog.text
    assert not turns.taken
    group(stub, 0)
    group(stub, 0)
    enlarged(stub, 1)
    fleet.grow([ONE])


def test_a_turn_that_cannot_be_taken_stops_no_start(
    fleet: AutoScalingFleet, stub: Stubber, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise client_error("Throttling")

    turns.meanwhile = fail
    group(stub, 0)
    fleet.grow([ONE])
    assert "could not be enlarged" in caplog.text


def test_the_size_names_the_instances_in_service_and_what_new_ones_are_made_from(
    fleet: AutoScalingFleet, stub: Stubber
) -> None:
    group(stub, 3, "InService", "Pending", "Terminating:Wait")
    found = fleet.size([ONE] * 12)
    assert found == FleetSize(needed=3, wanted=3, running=frozenset({"i-0"}), template="lt-1:4 lt-2:7")


def test_no_work_needs_more_hosts_than_the_group_may_have(fleet: AutoScalingFleet, stub: Stubber) -> None:
    group(stub, 0, largest=2)
    assert fleet.size([ONE] * 100).needed == 2


def test_a_deleted_group_lacks_all_hosts(fleet: AutoScalingFleet, stub: Stubber) -> None:
    stub.add_response("describe_auto_scaling_groups", {"AutoScalingGroups": []})
    assert fleet.size([ONE] * 12) == FleetSize(needed=3)


def test_the_size_is_never_old(fleet: AutoScalingFleet, stub: Stubber) -> None:
    for desired in (1, 2):
        group(stub, desired)
        assert fleet.size([]).wanted == desired


def test_clients_see_that_the_fleet_pauses(
    fleet: AutoScalingFleet, stub: Stubber, turns: Turns, clock: SetClock
) -> None:
    turns.note(Shortage(since=clock.now(), pauses=1, resumes_at=clock.now() + 61))
    group(stub, 0)
    status = fleet.status()
    assert status is not None
    assert status.message is not None
    assert "no worker on the last machines reached the master; the next ones start in 2 min" in status.message
    clock.move(61)
    group(stub, 0)
    assert fleet.status() == FleetStatus()


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
