"""Only workers that can keep tasks from the network get leases of accounts whose tasks may not use the network."""

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.access import Caller
from cloudpar_master.services.audit import facts
from cloudpar_master.services.placement import NETWORKED
from cloudpar_protocol import codec
from cloudpar_protocol.account_messages import AccountReply, CreateAccount, SetNetwork
from cloudpar_protocol.errors import NotFound
from cloudpar_protocol.payloads import Network, Unfit
from master.services.agent import Agent
from support.world import POLICY, World

from .test_placement import placement_of


def set_network(world: World, account_id: str, network: Network) -> None:
    body = codec.encode(SetNetwork(account_id=account_id, network=network))
    reply = world.dispatcher.perform(world.dispatcher.enter("set_network", Caller("admin"), body, codec.MSGPACK))
    assert isinstance(reply, AccountReply)
    assert reply.account.network == network


def test_a_lease_says_whether_its_tasks_may_use_the_network(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    set_network(world, ann.account_id, "none")
    packages = {world.start(ann, 1): "none", world.start(bob, 1): "outbound"}
    worker = Agent(world, "a", executors=2, offline=True)
    leases = [*worker.take(2), *worker.take(2)]
    assert {lease.package_id: lease.network for lease in leases} == packages


def test_a_worker_that_cannot_keep_tasks_from_the_network_gets_only_other_accounts(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    """Workers of earlier releases are such workers: they would ignore what the lease says."""
    set_network(world, ann.account_id, "none")
    world.start(ann, 5)
    bobs = world.start(bob, 5)
    worker = Agent(world, "a", executors=10)
    leases = [*worker.take(10), *worker.take(10)]
    assert {(lease.package_id, lease.network) for lease in leases} == {(bobs, "outbound")}


def test_a_package_without_a_network_waits_for_a_worker_and_its_client_learns_why(
    world: World, ann: AccountRecord
) -> None:
    set_network(world, ann.account_id, "none")
    package_id, networked = world.start(ann, 20), Agent(world, "a")
    for _ in range(10):
        assert networked.take(100) == []
        world.clock.move(POLICY.grace_s / 4)
    shown = placement_of(world, ann, package_id)
    assert (shown.workers, shown.fitting, shown.others) == (1, 0, [Unfit("host-a", NETWORKED)])
    (lease, *_) = Agent(world, "b", offline=True).take()
    assert (lease.package_id, lease.network) == (package_id, "none")


def test_a_package_that_runs_although_all_workers_lack_something_still_gets_no_network(
    world: World, ann: AccountRecord
) -> None:
    set_network(world, ann.account_id, "none")
    package_id, networked = world.start(ann, 5), Agent(world, "a")
    lacking = Agent(world, "b", offline=True)
    assert networked.take() == []
    (lease,) = lacking.take()
    lacking.give_back(lease)
    assert networked.take() == []
    (lease,) = lacking.take()
    assert (lease.package_id, lease.elsewhere, lease.network) == (package_id, False, "none")


def test_a_change_holds_for_the_next_leases(world: World, ann: AccountRecord) -> None:
    world.start(ann, 20, chunksize=1)
    worker, networked = Agent(world, "a", offline=True), Agent(world, "b")
    seen = [worker.take()[0].network]
    set_network(world, ann.account_id, "none")
    seen.append(worker.take()[0].network)
    assert networked.take() == []
    set_network(world, ann.account_id, "outbound")
    seen.append(worker.take()[0].network)
    assert networked.take()
    assert seen == ["outbound", "none", "outbound"]


def test_a_master_that_learns_late_of_a_change_gives_no_lease_to_a_worker_that_would_ignore_it(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On AWS the list of accounts without a network may be older than the account."""
    set_network(world, ann.account_id, "none")
    world.start(ann, 5)
    monkeypatch.setattr(type(world.backend.accounts), "offline", lambda _: ())
    assert Agent(world, "a").take() == []
    assert Agent(world, "b", offline=True).take()


def test_an_account_is_created_without_a_network(world: World) -> None:
    request = CreateAccount(idempotency_key="k", name="n", token_hash="0" * 64, quota_us=1, network="none")
    call = world.dispatcher.enter("create_account", Caller("admin"), codec.encode(request), codec.MSGPACK)
    reply = world.dispatcher.perform(call)
    assert isinstance(reply, AccountReply)
    assert reply.account.network == "none"
    assert world.record(reply.account.account_id).network == "none"
    line = facts(world.backend, call, "operator", "done", reply)
    assert line is not None
    assert line["network"] == "none"


def test_a_change_needs_an_account(world: World) -> None:
    with pytest.raises(NotFound, match="cloudpar account list"):
        set_network(world, "unknown", "none")


def test_the_audit_names_the_network(world: World, ann: AccountRecord) -> None:
    request = SetNetwork(account_id=ann.account_id, network="none")
    call = world.dispatcher.enter("set_network", Caller("admin"), codec.encode(request), codec.MSGPACK)
    assert facts(world.backend, call, "operator", "done") == {
        "who": "operator", "action": "set_network", "outcome": "done", "account_id": ann.account_id, "network": "none",
    }  # fmt: skip
