"""One record that cannot be read harms its own package only: on every adapter, all other packages go on."""

import logging

import pytest

from cloudpar_master.core.events import ExecutorsIdle
from cloudpar_master.ports import AccountRecord, Sending
from cloudpar_master.services import timer
from cloudpar_master.services.steps import finish
from cloudpar_master.services.worker_list import WorkerList
from cloudpar_protocol.account_messages import RevokeAccount
from cloudpar_protocol.client_messages import ListPackages
from cloudpar_protocol.errors import Gone
from cloudpar_protocol.worker_messages import Lease, RetrieveTasks
from master.damage import damage
from support.stores import Stores
from support.world import POLICY, World, publication, start_tasks


def leased(world: World, package_id: str) -> Lease:
    """Return a lease of a package's first chunk."""
    leases = [lease for lease in world.retrieve_all() if lease.package_id == package_id]
    return min(leases, key=lambda lease: lease.start)


def both_leased(world: World, one: str, other: str) -> tuple[Lease, Lease]:
    leases = world.retrieve_all()
    first, second = ([lease for lease in leases if lease.package_id == each] for each in (one, other))
    return first[0], second[0]


def test_a_beat_keeps_the_leases_of_other_packages(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    hers, his = both_leased(world, damaged := world.start(ann), world.start(bob))
    damage(world.backend.packages, damaged, "head")
    assert [view.state for view in world.extend(hers, his)] == ["ended", "wanted"]


def test_a_publication_takes_the_results_of_other_packages(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    hers, his = both_leased(world, damaged := world.start(ann), good := world.start(bob))
    damage(world.backend.packages, damaged, "head")
    reply = world.publish(publication(hers), publication(his))
    assert [view.state for view in reply.leases] == ["ended", "finished"]
    assert world.head(good).tasks.done == 5


def test_a_give_back_returns_the_tasks_of_other_packages(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    hers, his = both_leased(world, damaged := world.start(ann), good := world.start(bob))
    damage(world.backend.packages, damaged, "head")
    world.give_back(hers, (hers.start, hers.end), closes=True)
    world.give_back(his, (his.start, his.end), closes=True)
    assert good in {lease.package_id for lease in world.retrieve_all()}


def test_a_retrieval_brings_the_chunks_of_other_packages(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    damaged, good = world.start(ann), world.start(bob)
    damage(world.backend.packages, damaged, "head")
    assert {lease.package_id for lease in world.retrieve_all()} == {good}


def test_chunks_are_cut_for_idle_executors_of_other_packages(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    damaged, good = world.start(ann, tasks=1_000), world.start(bob, tasks=1_000)
    damage(world.backend.packages, damaged, "head")
    while leases := world.retrieve_all():
        world.work(leases)
    assert world.head(good).life.state == "completed"


def test_the_timer_folds_other_packages(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    damaged, good = world.start(ann), world.start(bob)
    damage(world.backend.packages, damaged, "head")
    world.clock.move(POLICY.lifetime_s)
    world.timer.tick()
    assert world.head(good).life.state == "failed"


def test_the_timer_reaches_packages_behind_many_unreadable_ones(
    world: World, ann: AccountRecord, bob: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer, "PACKAGES", 5)
    for _ in range(5):
        damage(world.backend.packages, world.start(ann, tasks=1), "head")
    good = world.start(bob)
    world.clock.move(POLICY.lifetime_s)
    world.timer.tick()
    assert world.timer.tick() == 1
    assert world.head(good).life.state == "failed"
    world.clock.move(timer.DEFER_S + 1)
    assert world.timer.tick() > 1, "an unreadable package is looked at again later: it may have been restored"


def test_lists_show_an_unreadable_package_as_failed(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    damaged, good = world.start(ann), world.start(bob)
    damage(world.backend.packages, damaged, "head")
    for account, expected in ((None, {damaged, good}), (ann, {damaged}), (bob, {good})):
        found = {each.package_id: each for each in finish(world.client.list_packages(account, ListPackages())).packages}
        assert found.keys() == expected
        if damaged in found:
            summary = found[damaged]
            assert (summary.state, summary.reason, summary.account_id) == ("failed", "unreadable", ann.account_id)
            assert summary.started_at == pytest.approx(world.clock.now())
            assert summary.message is not None
            assert damaged in summary.message


def test_the_owner_gets_a_clear_error_and_the_news_of_its_other_packages(world: World, ann: AccountRecord) -> None:
    damaged, good = world.start(ann), world.start(ann)
    damage(world.backend.packages, damaged, "head")
    world.work_all()
    world.clock.move(3)
    first, second = world.news(ann, damaged, good).packages
    assert (first.state, first.reason, first.results) == ("failed", "unreadable", [])
    assert f"the master's head of package {damaged} is damaged" in str(first.message)
    assert (second.state, len(second.results)) == ("completed", 10)


def test_no_other_account_sees_an_unreadable_package(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    damaged = world.start(ann)
    damage(world.backend.packages, damaged, "head")
    assert damaged in world.news(bob, damaged).missing


def test_an_unreadable_package_can_be_acknowledged_and_cancelled(world: World, ann: AccountRecord) -> None:
    damaged, good = world.start(ann), world.start(ann)
    damage(world.backend.packages, damaged, "head")
    assert world.cancel(None, damaged).state == "failed"
    world.acknowledge(ann, damaged, good)
    assert world.head(good).life.acknowledged_at is not None


def test_revoking_an_account_cancels_its_other_packages(world: World, ann: AccountRecord) -> None:
    damaged, good = world.start(ann), world.start(ann)
    damage(world.backend.packages, damaged, "head")
    finish(world.accounts.revoke_account(RevokeAccount(account_id=ann.account_id)))
    assert world.head(good).life.state == "cancelled"


def test_an_account_with_an_unreadable_package_learns_that_its_quota_is_spent(world: World) -> None:
    """The slices of the unreadable package are not known, so the others must not wait for them."""
    poor = world.account("poor", quota_us=1_000)
    damaged = world.start(poor, tasks=100)
    damage(world.backend.packages, damaged, "head")
    waiting = world.start(poor, tasks=100)
    world.clock.move(60)
    world.timer.tick()
    assert (world.head(waiting).life.state, world.head(waiting).life.reason) == ("failed", "quota")


def test_the_log_names_an_unreadable_package_once_in_a_while(
    world: World, ann: AccountRecord, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = world.start(ann)
    damage(world.backend.packages, damaged, "head")
    with caplog.at_level(logging.ERROR, "cloudpar_master"):
        for _ in range(3):
            world.status(ann, damaged)
            world.timer.tick()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        f"package {damaged}: its head cannot be read (its checksum is wrong); it counts as failed, and all others go on"
    )


def test_an_unreadable_package_is_removed_after_the_longest_time_that_a_package_is_kept(
    world: World, ann: AccountRecord
) -> None:
    damaged = world.start(ann)
    damage(world.backend.packages, damaged, "head")
    world.clock.move(POLICY.lifetime_s + POLICY.retention_s)
    world.timer.tick()
    assert world.head(damaged).damaged
    world.clock.move(POLICY.tombstone_s)
    world.timer.tick()
    assert world.backend.packages.load(damaged) is None


def test_a_removed_unreadable_package_gives_its_slices_back(world: World) -> None:
    poor = world.account("poor", quota_us=1_000)
    damaged = world.start(poor, tasks=100)
    assert world.record(poor.account_id).reserved_us == 1_000
    damage(world.backend.packages, damaged, "head")
    world.clock.move(POLICY.lifetime_s + POLICY.retention_s + POLICY.tombstone_s)
    world.timer.tick()
    account = world.record(poor.account_id)
    assert (account.reserved_us, account.spent_us) == (0, 0)
    assert world.head(world.start(poor, tasks=1)).quota.reserved_us == 1_000


def test_an_account_learns_that_its_quota_is_spent_after_an_unreadable_package_was_removed(world: World) -> None:
    poor = world.account("poor", quota_us=1_000)
    damage(world.backend.packages, world.start(poor, tasks=100), "head")
    world.clock.move(POLICY.lifetime_s + POLICY.retention_s + POLICY.tombstone_s)
    world.timer.tick()
    package_id = world.start(poor, tasks=100, chunksize=1)
    world.publish(publication(world.lease(), duration_us=30_000))
    world.clock.move(3_600)
    world.timer.tick()
    assert (world.head(package_id).life.state, world.head(package_id).life.reason) == ("failed", "quota")


def test_removing_an_unreadable_package_that_was_settled_changes_no_charge(world: World, ann: AccountRecord) -> None:
    damaged = world.start(ann)
    world.work_all()
    world.settle()
    damage(world.backend.packages, damaged, "head")
    world.clock.move(POLICY.lifetime_s + POLICY.retention_s + POLICY.tombstone_s)
    world.timer.tick()
    assert world.backend.packages.load(damaged) is None
    assert world.record(ann.account_id).spent_us == 10_000


def test_an_unreadable_head_that_is_restored_goes_on(world: World, ann: AccountRecord) -> None:
    """Damaging it again flips the bit back."""
    package_id = world.start(ann)
    lease = leased(world, package_id)
    damage(world.backend.packages, package_id, "head")
    world.publish(publication(lease))
    world.timer.tick()
    damage(world.backend.packages, package_id, "head")
    world.clock.move(3)
    assert world.status(ann, package_id).progress.done == 5, "results that came meanwhile wait in the inbox"


def test_an_unreadable_spec_fails_its_package_only(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    damaged, good = world.start(ann), world.start(bob)
    damage(world.backend.packages, damaged, "spec")
    assert {lease.package_id for lease in world.retrieve_all()} == {good}
    status = world.status(ann, damaged)
    assert (status.state, status.reason) == ("failed", "broken")
    assert "spec" in str(status.message)


def test_a_package_with_an_unreadable_spec_is_settled_and_forgotten(world: World, ann: AccountRecord) -> None:
    damaged = world.start(ann)
    damage(world.backend.packages, damaged, "spec")
    world.retrieve_all()
    world.acknowledge(ann, damaged)
    world.settle()
    assert world.head(damaged).life.settled
    world.clock.move(POLICY.tombstone_s + 1)
    world.timer.tick()
    world.clock.move(60)
    world.timer.tick()
    assert world.backend.packages.load(damaged) is None


def test_a_repeated_start_of_a_package_with_an_unreadable_spec_is_refused(world: World, ann: AccountRecord) -> None:
    request = start_tasks("key")
    package_id = world.client.start_tasks(ann, request).package_id
    damage(world.backend.packages, package_id, "spec")
    with pytest.raises(Gone, match="is damaged"):
        world.client.start_tasks(ann, request)


def test_an_unreadable_result_page_fails_its_package_and_not_the_news_of_others(
    world: World, ann: AccountRecord
) -> None:
    damaged, good = world.start(ann), world.start(ann)
    world.work_all()
    world.clock.move(3)
    assert world.status(ann, damaged).state == "completed"
    damage(world.backend.packages, damaged, "page")
    first, second = world.news(ann, damaged, good).packages
    assert (first.state, first.reason, first.results, first.more) == ("failed", "broken", [], False)
    assert "result page" in str(first.message)
    assert (second.state, len(second.results)) == ("completed", 10)
    listed = {each.package_id: each.state for each in finish(world.client.list_packages(None, ListPackages())).packages}
    assert listed == {damaged: "failed", good: "completed"}


def test_results_before_an_unreadable_page_are_delivered(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    first, second = world.retrieve_all()
    world.publish(publication(first))
    read = world.status(ann, package_id)
    world.publish(publication(second))
    damage(world.backend.packages, package_id, "page")
    assert [each.index for each in read.results] == list(range(first.start, first.end))
    later = world.status(ann, package_id, cursor=read.cursor)
    assert (later.state, later.results, later.cursor) == ("failed", [], read.cursor)


def test_a_completed_package_whose_result_page_is_missing_fails(world: World, ann: AccountRecord) -> None:
    lost, good = world.start(ann), world.start(ann)
    world.work_all()
    world.clock.move(3)
    world.backend.packages.delete_pages(lost)
    first, second = world.news(ann, lost, good).packages
    assert (first.state, first.reason, first.results, first.more) == ("failed", "broken", [], False)
    assert f"results of package {lost} are missing" in str(first.message)
    assert (second.state, len(second.results)) == ("completed", 10)


def test_an_unreadable_event_fails_its_package_only(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    hers, his = both_leased(world, damaged := world.start(ann), good := world.start(bob))
    world.backend.packages.append(damaged, [("e", ExecutorsIdle(executors=1))])
    damage(world.backend.packages, damaged, "event")
    world.publish(publication(hers), publication(his))
    assert (world.head(damaged).life.state, world.head(damaged).life.reason) == ("failed", "broken")
    assert world.head(good).tasks.done == 5


def test_a_message_that_is_no_chunk_is_deleted(
    world: World, stores: Stores, ann: AccountRecord, caplog: pytest.LogCaptureFixture
) -> None:
    stores.queue.send([Sending("nonsense", "nonsense", ann.account_id, "p", first=True, cost_us=1)])
    good = world.start(ann)
    assert {lease.package_id for lease in world.retrieve_all()} == {good}
    assert "'nonsense' is not the text of a chunk" in caplog.text
    world.clock.move(POLICY.lease_s + 1)
    assert all(lease.package_id == good for lease in world.retrieve_all())
    assert caplog.text.count("nonsense") == 1


def test_a_worker_that_was_set_aside_for_an_unreadable_package_is_listed(world: World, ann: AccountRecord) -> None:
    damaged = world.start(ann)
    damage(world.backend.packages, damaged, "head")
    request = RetrieveTasks(attempt_id="a", worker_id="w", executors=1, chunks=1, set_aside=[damaged], pythons=["3.11"])
    world.worker.retrieve_tasks(request)
    (worker,) = WorkerList(world.backend).list_workers().workers
    assert [each.package_id for each in worker.set_aside] == [damaged]
