"""The user data and the scripts of a host run against the stand-in: the host ends itself, and the timer reports it."""

from pathlib import Path

from cloudpar_master.core.shortage import SHORT_S
from support.customer import Customer
from support.gates import opening
from support.task_functions import mark_and_wait
from support.waiting import until

from .deployment import Deployment
from .group import Group
from .host import Host


def test_an_idle_host_drains_and_ends_itself_and_the_group_wants_one_less(
    deployment: Deployment, tmp_path: Path
) -> None:
    group = Group(deployment)
    group.empty()
    group.resize(1)
    (instance,) = group.instances()
    with Host(deployment, tmp_path, instance, CLOUDPAR_IDLE_S="1") as host:
        assert host.token() == deployment.worker_token
        said = host.await_end()
        assert "this instance will end (idle)" in said
        assert "the worker is drained, and the group knows" in said
        calls = host.calls()
    assert (group.desired(), group.instances()) == (0, [])
    (started,) = (call for call in calls if call.startswith("docker run"))
    assert f"--hostname {instance} " in started
    assert deployment.outputs()["Endpoint"] in started
    (stop,) = (number for number, call in enumerate(calls) if call.startswith("systemctl stop"))
    (end,) = (number for number, call in enumerate(calls) if "--should-decrement-desired-capacity" in call)
    assert stop < end
    assert f"--lifecycle-hook-name drain --instance-id {instance}" in calls[-1]


def test_a_host_without_its_image_ends_itself_and_the_fleet_pauses(cluster: Deployment, tmp_path: Path) -> None:
    customer, group = Customer(cluster, "broken-image"), Group(cluster)
    group.empty()
    (tmp_path / "root").mkdir()
    with customer.pool() as pool, opening(tmp_path / "gate") as gate:
        results = pool.map(mark_and_wait, [(str(tmp_path / "running"), str(gate))])
        until((tmp_path / "running").exists)
        # The start makes no instance if its function has looked at the group for an earlier test some seconds before.
        until(lambda: group.desired_after_a_tick() == 1)
        (instance,) = group.instances()
        group.let_pass(SHORT_S)
        assert "1 hosts of the fleet run, and workers of only 0 reach the master" in group.tick()
        with Host(cluster, tmp_path / "root", instance, has_image=False, CLOUDPAR_SILENT_S="1") as host:
            assert "this instance will end (silent)" in host.await_end()
            assert not any(call.startswith("docker run") for call in host.calls())
        assert group.instances() == []
        assert "the work needs 1 hosts, the fleet wants 0, and 0 run" in group.tick()
        assert group.instances() == [], "no further host starts in the pause"
        group.let_pass(SHORT_S)
        assert group.tick()
        assert len(group.instances()) == 1, "the next host starts after the pause"
        gate.touch()
        assert list(results) == ["done"]
    group.empty()
    assert group.tick() == ""
