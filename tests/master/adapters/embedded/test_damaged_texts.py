"""A text of the database that a flipped bit has made invalid harms at most the account that it belongs to."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_master.adapters.embedded.database import SCHEMA
from cloudpar_master.core.events import ExecutorsIdle
from cloudpar_master.core.fold.resending import quiet_s
from cloudpar_master.services.steps import finish
from cloudpar_protocol import codec
from cloudpar_protocol.account_messages import CreateAccount, GrantQuota, ListAccounts, ListAccountsReply
from cloudpar_protocol.client_messages import ListPackages
from support.world import POLICY, World, all_results, master, publication

TABLES = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n?\);", SCHEMA, re.DOTALL)
TEXTS = [(table, column) for table, columns in TABLES for column in re.findall(r"(\w+) TEXT", columns)]

DAMAGE = (
    "UPDATE {0} SET {1} = CAST(x'ff' || substr(CAST({1} AS BLOB), 2) AS TEXT)"
    " WHERE rowid = (SELECT min(rowid) FROM {0} WHERE {1} IS NOT NULL)"
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with master(tmp_path) as world:
        yield world


def damage(world: World, table: str, column: str) -> None:
    """Make a text of the oldest row of a table invalid."""
    database = world.backend.packages._db  # type: ignore[attr-defined]
    assert database.execute(DAMAGE.format(table, column)).rowcount == 1


def fill(world: World) -> None:
    """Let each table have a row, the oldest one of a worker's token or of ann."""
    request = CreateAccount(idempotency_key="w", name="w", token_hash="c" * 64, quota_us=0, role="worker")
    world.accounts.create_account(request)
    request = CreateAccount(idempotency_key="o", name="o", token_hash="d" * 64, quota_us=0, network="none")
    world.accounts.create_account(request)
    ann = world.account("ann")
    world.accounts.grant_quota(GrantQuota(idempotency_key="g", account_id=ann.account_id, quota_us=1))
    world.backend.accounts.keep_key(ann.account_id, b"key", None)
    world.start(ann, tasks=1)
    world.work_all()
    world.timer.tick()
    waiting = world.start(ann)
    world.backend.packages.append(waiting, [("e", ExecutorsIdle(executors=1))])
    world.lease()
    world.clock.move(POLICY.lease_s + 1)  # its oldest message waits, and has a receipt


def test_there_are_texts_of_many_tables() -> None:
    assert {("messages", "account"), ("packages", "account_id"), ("accounts", "name"), ("inbox", "key")} < set(TEXTS)
    assert len(TEXTS) > 20


@pytest.mark.parametrize(("table", "column"), TEXTS)
def test_a_damaged_text_does_not_stop_another_account(world: World, table: str, column: str) -> None:
    fill(world)
    bob = world.account("bob")
    before = world.start(bob)
    damage(world, table, column)
    after = world.start(bob)
    leases = [lease for lease in world.retrieve_all() if lease.account == bob.account_id]
    assert {lease.package_id for lease in leases} == {before, after}
    assert {view.state for view in world.extend(*leases)} == {"wanted"}
    world.publish(*map(publication, leases))
    world.clock.move(3.0)
    world.timer.tick()
    for package_id in (before, after):
        status = world.status(bob, package_id)
        assert (status.state, sorted(all_results(status))) == ("completed", list(range(10)))
    assert {before, after} <= {
        each.package_id for each in finish(world.client.list_packages(None, ListPackages())).packages
    }
    listed = codec.encode(world.accounts.list_accounts(ListAccounts()))
    assert "bob" in {each.name for each in codec.decode(listed, ListAccountsReply).accounts}
    world.acknowledge(bob, before, after)
    world.settle()
    assert world.record(bob.account_id).spent_us == 20 * 1_000


def test_held_retrievals_are_woken_for_a_chunk_with_a_damaged_account(world: World) -> None:
    ann = world.account("ann")
    package_id = world.start(ann, tasks=1)
    damage(world, "messages", "account")
    (needs,) = world.backend.queue.waiting_needs()  # type: ignore[attr-defined]
    assert needs.package == package_id
    assert world.lease().package_id == package_id


def test_a_chunk_whose_message_is_in_a_damaged_state_is_sent_again(world: World) -> None:
    ann = world.account("ann")
    package_id = world.start(ann, tasks=1)
    damage(world, "messages", "state")
    assert world.retrieve() == []
    world.clock.move(quiet_s(POLICY))
    world.timer.tick()
    assert world.lease().package_id == package_id


@pytest.mark.parametrize("state", ["active", "revoked"])
def test_an_account_with_a_damaged_state_counts_as_revoked(world: World, state: str) -> None:
    ann = world.account("ann")
    if state == "revoked":
        world.backend.accounts.revoke(ann.account_id)
    damage(world, "accounts", "state")
    assert world.record(ann.account_id).state == "revoked"
