"""Restoring as docs/operations.md describes it: the tests run the commands of that page, one after the other."""

import random
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cloudpar_master.adapters.aws.clients import Clients
from cloudpar_master.core.fold.resending import quiet_s
from cloudpar_master.ports import AccountRecord
from support.clock import SetClock
from support.world import POLICY, World, all_results, publication, world_on

from .stores import CONTRACT, Names, clients, create, let_queue_go_by, moto_at, name_of, stores_of

PAGE = Path(__file__).parents[2] / "docs/operations.md"
COMMANDS = [line for line in PAGE.read_text().splitlines() if line.startswith("aws dynamodb ")]
TASKS = 10


class Deployment(NamedTuple):
    """A deployment on moto, and the clock that it goes by."""

    endpoint: str
    names: Names
    clock: SetClock

    def world(self) -> World:
        """Start a process of the master."""
        return world_on(stores_of(self.names, self.clock, *[self.endpoint] * 3), self.clock, POLICY)

    def restored(self) -> "Deployment":
        """Restore both tables to this moment, and deploy with the new ones, as the page says."""
        names = self.names
        new = names._replace(packages=f"{names.packages}-new", accounts=f"{names.accounts}-new")
        for old_name, new_name in ((names.packages, new.packages), (names.accounts, new.accounts)):
            for command in COMMANDS:
                run(clients(self.endpoint), command, {"OLD": old_name, "NEW": new_name, "TIME": self.clock.now()})
        return self._replace(names=new)


def run(at: Clients, command: str, words: dict[str, Any]) -> None:
    """Carry out a command of the AWS command line, with these words in place of those in capitals."""
    name, *rest = shlex.split(command)[2:]
    options: dict[str, Any] = {}
    for part in rest:
        if part.startswith("--"):
            key = "".join(word.capitalize() for word in part[2:].split("-"))
            options[key] = True
        else:
            options[key] = words.get(part, _structure(part) if "=" in part else part)
    getattr(at.dynamodb, name.replace("-", "_"))(**options)


def _structure(text: str) -> dict[str, Any]:
    pairs = (pair.split("=") for pair in text.split(","))
    return {key: value == "true" if value in {"true", "false"} else value for key, value in pairs}


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Deployment]:
    clock = SetClock()
    let_queue_go_by(clock)
    with moto_at(clock) as endpoint:
        yield Deployment(endpoint, create(name_of(tmp_path), endpoint, endpoint, endpoint), clock)


def finished_after(restored: Deployment, account: AccountRecord, package_id: str) -> World:
    """Work on a restored deployment until nothing is left. Returns its process."""
    world = restored.world()
    world.timer.tick()
    world.work_all()
    status = world.status(world.record(account.account_id), package_id)
    assert status.state == "completed"
    assert sorted(all_results(status)) == list(range(TASKS))
    return world


def test_a_package_that_ran_at_the_restored_moment_ends_after_the_steps_of_the_page(old: Deployment) -> None:
    world = old.world()
    ann = world.account("ann")
    package_id = world.start(ann, tasks=TASKS)
    lease = world.lease()
    world.publish(publication(lease, [lease.start]))
    restored = old.restored()
    world.publish(publication(lease, range(lease.start + 1, lease.end), seq=1, closes=True))
    world.work_all()  # the queue has no message of the package after this
    assert world.status(ann, package_id).state == "completed"
    old.clock.move(quiet_s(POLICY))
    assert finished_after(restored, ann, package_id).record(ann.account_id).spent_us == TASKS * 1_000


def test_a_package_whose_messages_still_wait_is_not_run_twice_after_a_restore(old: Deployment) -> None:
    world = old.world()
    ann = world.account("ann")
    package_id = world.start(ann, tasks=TASKS)
    restored = old.restored()
    old.clock.move(quiet_s(POLICY))
    started = finished_after(restored, ann, package_id)
    assert started.record(ann.account_id).spent_us == TASKS * 1_000
    assert started.retrieve_all() == []


def test_a_package_whose_results_were_deleted_after_the_restored_moment_fails_and_is_not_completed(
    old: Deployment,
) -> None:
    """The tables come back, and the objects with large result pages do not."""
    world = old.world()
    ann = world.account("ann")
    package_id = world.start(ann, tasks=TASKS)
    while leases := world.retrieve():
        world.publish(*(publication(lease, data=random.Random(7).randbytes(20_000)) for lease in leases))
    assert world.status(ann, package_id).state == "completed"
    restored = old.restored()
    world.acknowledge(ann, package_id)
    world.settle()
    status = restored.world().status(ann, package_id)
    assert (status.state, status.reason, status.results, status.more) == ("failed", "broken", [], False)
    assert "are missing: start the work again" in str(status.message)


def test_restored_tables_have_what_the_stack_gives_its_own(old: Deployment) -> None:
    at = clients(old.endpoint).dynamodb
    for name in old.restored().names[:2]:
        expiry = at.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        assert (expiry["TimeToLiveStatus"], expiry["AttributeName"]) == ("ENABLED", CONTRACT["ttlAttribute"])
        backups = at.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
        assert at.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
