"""Accounts get equal shares of the executors' time, however long their tasks turn out to be, in simulated time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_master.ports import AccountRecord
from simulation.calls import SECOND, OpenSite
from simulation.site import Site
from support.memory.stores import in_memory
from support.world import master

TASKS, TASK_US = 200, SECOND // 20
LONG_US = 3 * SECOND


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[OpenSite]:
    with master(tmp_path, factory=in_memory) as world:
        yield lambda *executors: Site(world, *executors)


def many_calls(site: Site, account: AccountRecord) -> None:
    """Start packages of one long task each. The master never knows the duration of such a task before it ends."""
    for _ in range(40):
        site.start(account, 1, LONG_US)


@pytest.mark.parametrize("executors", [(2,), (1, 1), (4,), (1, 1, 1, 1)])
def test_a_map_beside_another_accounts_tasks_of_unknown_length_gets_its_share(
    open_site: OpenSite, executors: tuple[int, ...]
) -> None:
    """A fair share is half of the time. In addition, the other account may be a few long tasks ahead."""
    site = open_site(*executors)
    ann, bob = site.account("ann"), site.account("bob")
    at_us = site.now_us
    alone_us = site.run_until_done(site.start(ann, TASKS, TASK_US)) - at_us
    at_us = site.now_us
    package_id = site.start(ann, TASKS, TASK_US)
    site.run_until(at_us + alone_us // 5)
    many_calls(site, bob)
    beside_us = site.run_until_done(package_id) - at_us
    assert beside_us <= 2 * alone_us + 4 * LONG_US
