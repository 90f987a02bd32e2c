"""The functions size the group of the deployed stack, with the rights and the settings that the stack gives them."""

from pathlib import Path

from support.customer import Customer
from support.gates import opening
from support.task_functions import mark_and_wait
from support.waiting import until

from .deployment import Deployment
from .group import Group

MOST = 4
"""How many instances the environment dev may have."""


def test_a_start_and_the_timer_enlarge_the_fleet_for_the_work(cluster: Deployment, tmp_path: Path) -> None:
    customer, group = Customer(cluster, "fleet"), Group(cluster)
    with customer.pool() as pool:
        group.empty()

        def desired_after_a_start() -> int:
            assert list(pool.map(abs, [-1])) == [1]
            return group.desired()

        # A function looks at the group once in some seconds only, and an earlier test may have made it look.
        until(lambda: desired_after_a_start() == 1)  # one chunk needs one host
        with opening(tmp_path / "gate") as gate:
            results = pool.map(mark_and_wait, [(str(tmp_path / "running"), str(gate))] * 30)
            until((tmp_path / "running").exists)
            assert group.desired() == MOST
            group.empty()
            until(lambda: group.desired_after_a_tick() == MOST)
            gate.touch()
        assert len(list(results)) == 30
        group.empty()
        assert group.desired_after_a_tick() == 0, "no work needs no host"
