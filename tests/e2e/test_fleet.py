"""The functions size the group of the deployed stack, with the rights and the settings that the stack gives them."""

import json
from pathlib import Path
from typing import Any

from system.books import Customer
from system.work import mark_and_wait, until

from .deployment import Deployment
from .gates import opening

MOST = 4
"""How many instances the environment dev may have."""


def test_a_start_and_the_timer_enlarge_the_fleet_for_the_work(cluster: Deployment, tmp_path: Path) -> None:
    customer, group = Customer(cluster, "fleet"), Group(cluster)
    with customer.pool() as pool:
        group.empty()
        assert list(pool.map(abs, [-1])) == [1]
        assert group.desired() == 1, "one chunk needs one host"
        with opening(tmp_path / "gate") as gate:
            results = pool.map(mark_and_wait, [(str(tmp_path / "running"), str(gate))] * 30)
            until((tmp_path / "running").exists)
            assert group.desired() == MOST
            group.empty()
            until(lambda: group.desired_after_a_tick() == MOST)  # a function looks once in some seconds only
            gate.touch()
        assert len(list(results)) == 30
        group.empty()
        assert group.desired_after_a_tick() == 0, "no work needs no host"


class Group:
    """The Auto Scaling group of a deployment, and the timer that sizes it."""

    def __init__(self, deployment: Deployment) -> None:
        self._name = deployment.outputs()["FleetGroup"]
        self._scaling: Any = deployment.aws.client("autoscaling")
        self._functions: Any = deployment.aws.client("lambda")

    def desired(self) -> int:
        found = self._scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self._name])
        return int(found["AutoScalingGroups"][0]["DesiredCapacity"])

    def empty(self) -> None:
        self._scaling.set_desired_capacity(AutoScalingGroupName=self._name, DesiredCapacity=0)

    def desired_after_a_tick(self) -> int:
        """Invoke the timer."""
        pages = self._functions.get_paginator("list_functions").paginate()
        (timer,) = (
            each["FunctionName"]
            for page in pages
            for each in page["Functions"]
            if each["Handler"] == "cloudpar_handlers.timer.handle"
        )
        answer = self._functions.invoke(FunctionName=timer)
        assert "FunctionError" not in answer, json.load(answer["Payload"])
        return self.desired()
