from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cloudpar_master.core.events import CancelAsked, Event
from cloudpar_master.ports import AccountRecord, InboxItem, Opened
from cloudpar_master.services.folding import EVENTS, Folding
from cloudpar_protocol.errors import Unavailable
from support.packages import inbox
from support.watched_world import WatchedWorld
from support.world import POLICY, World, all_results, master, publication


def losing(world: World, times: int) -> WatchedWorld:
    """Return a master that loses this many races: another one folds just before each save."""
    watched = WatchedWorld(world)
    left = [times]

    def save(*args: object) -> bool:
        if left[0]:
            left[0] -= 1
            head = world.head(args[0].package_id)  # type: ignore[attr-defined]
            newer = replace(head, version=head.version + 1)
            assert world.backend.packages.save(newer, 0.0)
            Folding(world.backend)._carry_out(newer)
        saved: bool = world.backend.packages.save(*args)  # type: ignore[arg-type]
        return saved

    watched.ports["packages"].instead["save"] = save
    return watched


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_lost_race_loses_nothing(world: World, ann: AccountRecord, times: int) -> None:
    watched = losing(world, times)
    package_id = watched.start(ann, tasks=40)
    world.clock.move(3.0)
    world.timer.tick()
    loser = losing(world, times)
    while leases := loser.retrieve():
        for lease in leases:
            loser.publish(publication(lease, [lease.start, lease.start + 1]))
            loser.publish(publication(lease, range(lease.start + 2, lease.end), seq=1, closes=True))
    status = world.status(ann, package_id)
    assert (status.state, sorted(all_results(status))) == ("completed", list(range(40)))
    assert world.record(ann.account_id).spent_us == 40_000


def test_the_loser_of_a_race_drops_its_answers_which_the_winner_has_too(world: World, ann: AccountRecord) -> None:
    watched = losing(world, 1)
    package_id = watched.start(ann)
    head = world.head(package_id)
    assert head.quota.reserved_us == world.record(ann.account_id).reserved_us
    assert head.tasks.open != []


def test_an_event_that_comes_while_another_master_folds_is_taken(world: World, ann: AccountRecord) -> None:
    """Otherwise it would wait in the inbox until another event comes."""
    package_id = world.start(ann)
    one, two = world.retrieve()
    winner = WatchedWorld(world)

    def save(*args: object) -> bool:
        winner.ports["packages"].instead.clear()
        losing(world, 1).publish(publication(two))
        saved: bool = world.backend.packages.save(*args)  # type: ignore[arg-type]
        return saved

    winner.ports["packages"].instead["save"] = save
    winner.publish(publication(one))
    assert world.head(package_id).tasks.done == 10
    assert inbox(world.backend.packages, package_id) == []


def test_a_publication_that_loses_every_race_is_refused_for_a_retry_and_stored(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann)
    (lease, _) = world.retrieve()
    loser = WatchedWorld(world)
    loser.ports["packages"].instead["save"] = lambda *_: False
    with pytest.raises(Unavailable, match="try again"):
        loser.publish(publication(lease))
    assert [item.key for item in inbox(world.backend.packages, package_id)] == [f"p#{lease.lease_id}#000000"]
    assert world.head(package_id).tasks.done == 0
    world.publish(publication(lease))
    assert world.head(package_id).tasks.done == 5
    assert inbox(world.backend.packages, package_id) == []


def test_large_results_that_lose_a_race_are_not_stored_in_the_inbox(world: World, ann: AccountRecord) -> None:
    world.start(ann)
    (lease, _) = world.retrieve()
    loser = losing(world, 2)
    loser.publish(publication(lease, data=b"x" * 10_000))
    assert "packages.append" not in loser.calls
    assert loser.calls.count("packages.save") == 3


def test_uncontended_events_go_straight_into_a_head(world: World, ann: AccountRecord) -> None:
    world.start(ann)
    (lease, _) = world.retrieve()
    watched = WatchedWorld(world)
    watched.publish(publication(lease))
    assert watched.calls[:2] == ["packages.open", "packages.save"]
    assert "packages.append" not in watched.calls


def test_a_confirmation_waits_for_the_fold_that_took_the_event(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    head = losing(world, 6).client._folding.confirm(package_id, "cancel", CancelAsked())
    assert head is not None
    assert head.life.state == "cancelled"


def test_a_confirmation_behind_a_full_inbox_is_refused_for_a_retry(world: World, ann: AccountRecord) -> None:
    """A fold sees only the oldest events, so it cannot know whether the event behind them was taken."""
    package_id = world.start(ann)
    older: list[tuple[str, Event]] = [(f"old {number}", CancelAsked(ranges=[])) for number in range(2 * EVENTS)]
    world.backend.packages.append(package_id, older)
    watched = WatchedWorld(world)
    watched.ports["packages"].instead["save"] = lambda *_: False
    with pytest.raises(Unavailable, match="is very busy: try again") as caught:
        watched.cancel(ann, package_id)
    assert caught.value.retryable
    assert caught.value.retry_after_s == 1.0
    assert world.head(package_id).life.state == "running"
    world.client._folding.advance(package_id)
    assert world.head(package_id).life.state == "cancelled", "the event is durable, and is taken in the end"


def test_many_events_are_folded_in_bounded_batches(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    older: list[tuple[str, Event]] = [(f"old {number}", CancelAsked(ranges=[])) for number in range(3 * EVENTS)]
    world.backend.packages.append(package_id, older)
    version = world.head(package_id).version
    world.client._folding.advance(package_id)
    assert world.head(package_id).version == version + 3
    assert inbox(world.backend.packages, package_id) == []


def test_an_unreadable_event_fails_its_package_with_the_reason(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    watched = WatchedWorld(world)
    watched.ports["packages"].instead["open"] = lambda *_: Opened(
        world.head(package_id), [InboxItem("strange", None)], more=False
    )
    watched.client._folding.advance(package_id)
    status = world.status(ann, package_id)
    assert (status.state, status.reason, status.message) == ("failed", "broken", "event strange is unreadable")


def test_an_event_that_cannot_be_folded_fails_its_package(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    watched = WatchedWorld(world)
    wrong: object = "no event"
    watched.ports["packages"].instead["open"] = lambda *_: Opened(
        world.head(package_id),
        [InboxItem("wrong", wrong)],  # type: ignore[arg-type]
        more=False,
    )
    watched.client._folding.advance(package_id)
    status = world.status(ann, package_id)
    assert (status.state, status.reason) == ("failed", "broken")
    assert status.message is not None
    assert "report this with the package id" in status.message


def test_a_newer_masters_head_is_left_alone(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    (lease, _) = world.retrieve()
    newer = replace(world.head(package_id), schema=99, version=world.head(package_id).version + 1)
    assert world.backend.packages.save(newer, 0.0)
    world.publish(publication(lease))
    assert world.head(package_id).tasks.done == 0
    assert world.backend.packages.save(replace(newer, schema=1, version=newer.version + 1), 0.0)
    world.timer.tick()
    assert world.head(package_id).tasks.done == 5


def test_chunks_that_the_queue_did_not_take_are_sent_again(world: World, ann: AccountRecord) -> None:
    watched = WatchedWorld(world)
    watched.ports["queue"].instead["send"] = lambda messages: [
        world.backend.queue.send([message])[0] if number else False for number, message in enumerate(messages)
    ]
    package_id = watched.start(ann)
    assert world.backend.queue.waiting() == 1
    world.clock.move(3.0)
    world.timer.tick()
    assert world.backend.queue.waiting() == 2
    world.work_all()
    assert world.status(ann, package_id).state == "completed"


def test_a_result_page_stays_far_smaller_than_an_answer(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=40_000, chunksize=40_000)
    (lease,) = world.retrieve()
    parts = [publication(lease, range(at, at + 4_000), seq=at, data=b"") for at in range(0, 40_000, 4_000)]
    world.publish(*parts)
    pages = world.backend.packages.pages(package_id, 0, 2**60, 2**60)
    assert sum(len(page.results) for page in pages) == 40_000
    assert max(len(msgspec.msgpack.encode(page.results)) for page in pages) < 2**20


@pytest.mark.parametrize(("fold_bytes", "folds"), [(100_000, 3), (200_000, 2), (300_000, 1)])
def test_a_request_takes_as_many_folds_as_the_policy_says(tmp_path: Path, fold_bytes: int, folds: int) -> None:
    """Each of three publications has 96,000 bytes of results."""
    with master(tmp_path, policy=replace(POLICY, fold_bytes=fold_bytes)) as world:
        package_id = world.start(world.account(), tasks=6_000, chunksize=6_000)
        (lease,) = world.retrieve()
        parts = [publication(lease, range(at, at + 2_000), seq=at, data=b"") for at in range(0, 6_000, 2_000)]
        world.publish(*parts)
        assert len(world.backend.packages.pages(package_id, 0, 2**60, 2**60)) == folds
