"""Hours with a fleet whose workers never reach the master: few hosts start, and the operator learns about it.

The timer's real keeper runs each minute, each time in a new process. The group of instances is modelled, with the time
after which a silent host ends itself by infra/lib/host/watch.sh. The alarm is the one of the stack's template.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from aws.template import ROOT, synthesized
from cloudpar_master.adapters.aws.fleet import AutoScalingFleet
from cloudpar_master.adapters.aws.fleet_lock import FleetLock
from cloudpar_master.adapters.aws.package_store import DynamoPackageStore
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.core.fleet_size import HostShape, Work
from cloudpar_master.core.shortage import SHORT_S
from cloudpar_master.ports import WorkerRecord
from cloudpar_master.services.fleet_keeper import FleetKeeper
from support.clock import SetClock
from support.stores import Stores
from support.world import POLICY, World, master

STEP_S = 10
BOOT_S = 40
"""From the start of an instance until its first boot runs watch.sh and the group has it in service."""

(SILENT_S,) = map(int, re.findall(r"CLOUDPAR_SILENT_S:-(\d+)", (ROOT / "infra/lib/host/watch.sh").read_text()))
"""After how many seconds of silence a host ends itself."""


class Group:
    """Stands in for AWS's client of the group, and for the hosts. `broken` hosts never reach the master."""

    def __init__(self, largest: int, clock: SetClock) -> None:
        self.largest, self.clock = largest, clock
        self.desired = self.boots = 0
        self.version = "1"
        self.broken = {"1"}
        self.hosts: dict[str, tuple[float, str]] = {}

    def describe_auto_scaling_groups(self, **_: object) -> dict[str, Any]:
        instances = [{"InstanceId": name, "LifecycleState": self._state(name)} for name in self.hosts]
        specification = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt", "Version": self.version}}
        return {
            "AutoScalingGroups": [
                {
                    "DesiredCapacity": self.desired, "MaxSize": self.largest, "Instances": instances,
                    "MixedInstancesPolicy": {"LaunchTemplate": specification | {"Overrides": []}},
                }
            ]
        }  # fmt: skip

    def _state(self, name: str) -> str:
        return "InService" if self.age(name) >= BOOT_S else "Pending"

    def age(self, name: str) -> float:
        return self.clock.now() - self.hosts[name][0]

    def set_desired_capacity(self, *, DesiredCapacity: int, **_: object) -> None:  # noqa: N803 - AWS's name
        self.desired = DesiredCapacity

    def works(self, name: str) -> bool:
        return self.hosts[name][1] not in self.broken and self.age(name) >= BOOT_S

    def step(self) -> None:
        """Start missing hosts, and let silent ones end themselves: the group then wants one less."""
        for name in [name for name in self.hosts if not self.works(name) and self.age(name) >= BOOT_S + SILENT_S]:
            del self.hosts[name]
            self.desired -= 1
        while len(self.hosts) < self.desired:
            self.boots += 1
            self.hosts[f"i-{self.boots}"] = (self.clock.now(), self.version)


class Deployment:
    """The timer, its row on DynamoDB, the group, and the packages of one account."""

    def __init__(self, world: World, stores: Stores, largest: int) -> None:
        assert isinstance(stores.packages, DynamoPackageStore)
        self.world, self.group = world, Group(largest, world.clock)
        self.errors: list[Exception | None] = []
        """What each run of the timer has raised."""
        self.outsiders: list[str] = []
        self._table = stores.packages._table
        self.ann = world.account()

    def fleet(self) -> AutoScalingFleet:
        """Return the fleet as a new process of any function has it."""
        client: Any = self.group
        clock = self.world.clock
        turn = FleetLock(self._table, clock, RandomIds(), 86_400.0)
        return AutoScalingFleet(lambda: client, "g", clock, turn, HostShape(2, 2))

    def start(self) -> str:
        """Start a package that needs as many hosts as there may be."""
        return self.world.start(self.ann, 100, chunksize=1)

    def run(self, minutes: int) -> None:
        for _ in range(minutes):
            self._note_workers()
            try:
                FleetKeeper(self.world.backend._replace(fleet=self.fleet())).tick()
            except Exception as error:  # noqa: BLE001 - as Lambda does, which counts it
                self.errors.append(error)
            else:
                self.errors.append(None)
            for _ in range(60 // STEP_S):
                self.world.clock.move(STEP_S)
                self.group.step()

    def _note_workers(self) -> None:
        working = [name for name in self.group.hosts if self.group.works(name)]
        for host in [*working, *self.outsiders]:
            self.world.backend.registry.note(WorkerRecord(f"w of {host}", self.world.clock.now(), host=host))

    def alarms(self) -> list[bool]:
        """Return for each period whether the alarm is on, by its rule in the template."""
        made = synthesized(alarmEmail="ops@example.com")["Resources"]
        (rule,) = (each["Properties"] for name, each in made.items() if name.startswith("ObservabilityTimer"))
        assert (rule["MetricName"], rule["Statistic"]) == ("Errors", "Sum")
        assert rule["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        minutes = rule["Period"] // 60
        failing = [
            sum(error is not None for error in self.errors[start : start + minutes]) >= rule["Threshold"]
            for start in range(0, len(self.errors), minutes)
        ]
        of_last = rule["EvaluationPeriods"]
        return [
            sum(failing[max(0, end - of_last) : end]) >= rule["DatapointsToAlarm"] for end in range(1, len(failing) + 1)
        ]


@pytest.fixture
def world(tmp_path: Path, clock: SetClock) -> Iterator[World]:
    with master(tmp_path, replace(POLICY, first_window=32), clock) as world:
        yield world


@pytest.mark.parametrize(
    ("hosts", "outsiders"),
    [(1, []), (2, ["laptop"]), (4, [])],
    ids=["one host", "two hosts, and a worker on another machine", "four hosts"],
)
def test_a_broken_image_starts_few_hosts_and_the_operator_gets_a_mail(
    world: World, stores: Stores, hosts: int, outsiders: list[str]
) -> None:
    deployment = Deployment(world, stores, hosts)
    deployment.outsiders = outsiders
    deployment.start()
    deployment.run(6 * 60)
    assert deployment.group.boots <= 10 * hosts
    alarms = deployment.alarms()
    assert 5 * (alarms.index(True) + 1) <= 30, "the mail comes within half an hour"
    assert all(alarms[6:]), "the alarm stays on"


def test_the_pause_is_noticed_before_the_silent_hosts_are_replaced() -> None:
    assert SHORT_S + 2 * 60 <= SILENT_S


def test_hosts_that_work_are_no_reason_for_a_mail(world: World, stores: Stores) -> None:
    deployment = Deployment(world, stores, 4)
    deployment.group.broken = set()
    deployment.start()
    deployment.run(60)
    assert deployment.group.boots == 4
    assert set(deployment.errors) == {None}


def test_hosts_from_a_new_template_start_at_once_and_end_the_alarm(world: World, stores: Stores) -> None:
    deployment = Deployment(world, stores, 2)
    deployment.start()
    deployment.run(150)
    boots = deployment.group.boots
    deployment.group.version = "2"
    deployment.run(2)
    assert deployment.group.boots == boots + 2
    deployment.run(18)
    assert not deployment.alarms()[-1]
    assert deployment.errors[-15:] == [None] * 15


def test_a_further_package_starts_no_host_while_the_fleet_pauses(world: World, stores: Stores) -> None:
    deployment = Deployment(world, stores, 4)
    deployment.world.start(deployment.ann, 1)
    deployment.run(60)
    boots = deployment.group.boots
    deployment.start()
    deployment.fleet().grow([Work(parts=100, total_us=None, chunks=100)])
    deployment.run(5)
    assert deployment.group.boots == boots


def test_without_work_the_alarm_ends_and_the_next_package_starts_its_hosts_at_once(
    world: World, stores: Stores
) -> None:
    deployment = Deployment(world, stores, 1)
    package_id = deployment.start()
    deployment.run(3 * 60)
    boots = deployment.group.boots
    world.cancel(deployment.ann, package_id)
    deployment.run(20)
    assert deployment.errors[-1] is None
    deployment.start()
    deployment.run(2)
    assert deployment.group.boots == boots + 1
