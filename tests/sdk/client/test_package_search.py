from typing import Any

import pytest

from cloudpar._client.package_search import COMPLETE, NEWEST, find
from cloudpar.errors import NotFound
from cloudpar_protocol.client_messages import ListPackages, ListPackagesReply, PackageSummary, Progress

OLD = "0" * COMPLETE


def summary(package_id: str) -> PackageSummary:
    progress = Progress(tasks=1, done=0, executors=0, charged_us=0)
    return PackageSummary(
        package_id=package_id, account_id="a", name="f", state="running", started_at=0.0, progress=progress
    )


class Master:
    """A master with NEWEST packages, and an older one, whose id is OLD."""

    def __init__(self, *, knows_ids: bool = True) -> None:
        self.newest = [summary(f"{number:032}") for number in range(NEWEST, 0, -1)]
        self.knows_ids = knows_ids

    def call(self, _route: Any, message: ListPackages) -> ListPackagesReply:
        if message.package_id is None or not self.knows_ids:
            return ListPackagesReply(packages=self.newest[: message.limit])
        every = [*self.newest, summary(OLD)]
        return ListPackagesReply(packages=[each for each in every if each.package_id == message.package_id])


def test_a_whole_id_is_found_behind_the_newest_packages() -> None:
    assert find(Master(), OLD).package_id == OLD


def test_a_whole_id_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"no package 'xxx.*' that you may see"):
        find(Master(), "x" * COMPLETE)


def test_the_start_of_an_id_is_searched_among_the_newest_packages() -> None:
    assert find(Master(), f"{NEWEST:032}"[:-1]).package_id == f"{NEWEST:032}"
    with pytest.raises(NotFound, match=f"among the newest {NEWEST}"):
        find(Master(), "x")


def test_a_master_of_an_earlier_release_finds_a_whole_id_among_the_newest_packages() -> None:
    assert find(Master(knows_ids=False), f"{7:032}").package_id == f"{7:032}"
    with pytest.raises(NotFound):
        find(Master(knows_ids=False), OLD)
