from msgspec.structs import replace

from cloudpar_master.core.effects import (
    LATE_PAUSES,
    RETRY_S,
    Delete,
    Forget,
    Reserve,
    Send,
    Settle,
    due_at,
    look_at,
    pending,
)
from cloudpar_master.core.events import Acknowledged, CancelAsked, Deleted, GaveBack, Sent, Settled
from cloudpar_master.core.fold.resending import quiet_s
from cloudpar_master.core.head import Head
from cloudpar_master.core.quota import FIRST_SLICE_US
from master.core.folds import NOW, POLICY, finished, new, published, running, then
from support.heads import altered


def sent(head: Head) -> Head:
    return then(head, Sent(chunks=[(chunk.start, chunk.end, chunk.generation) for chunk in head.tasks.unsent]))


def settled(head: Head) -> Head:
    return then(head, Settled(charged_us=head.quota.used_us))


def test_a_new_package_reserves_before_it_sends() -> None:
    assert pending(new(), POLICY) == [Reserve(0, FIRST_SLICE_US)]


def test_a_chunk_stays_pending_until_it_is_known_to_be_sent() -> None:
    head = running()
    assert pending(head, POLICY) == [Send(head.tasks.open)]
    assert due_at(head, POLICY) == NOW + POLICY.send_again_s
    assert pending(sent(head), POLICY) == []
    assert due_at(sent(head), POLICY) == NOW + quiet_s(POLICY)


def test_a_head_with_more_than_unsent_chunks_is_due_soon_even_if_sending_is_not_saved() -> None:
    policy = replace(POLICY, send_again_s=60.0)
    assert due_at(running(), policy) == NOW + 60.0
    asking = altered(running(), wanted_us=1000)
    assert [type(each) for each in pending(asking, policy)] == [Reserve, Send]
    assert due_at(asking, policy) == NOW + RETRY_S


def test_chunks_that_the_queue_did_not_take_stay_pending() -> None:
    head = running()
    first = head.tasks.open[0]
    head = then(head, Sent(chunks=[(first.start, first.end, first.generation)]))
    assert pending(head, POLICY) == [Send(head.tasks.open[1:])]


def test_a_chunk_with_a_result_counts_as_sent() -> None:
    head = running()
    head = then(head, published(head.version, [0, 1]))
    assert [chunk.sent for chunk in head.tasks.open] == [True, False, False, False]


def test_a_late_result_does_not_mark_a_newer_generation_as_sent() -> None:
    head = running()
    head = then(head, published(head.version - 1, [0]))
    assert not any(chunk.sent for chunk in head.tasks.open)


def test_a_late_answer_of_the_queue_does_not_mark_a_chunk_of_a_newer_generation_as_sent() -> None:
    """The queue has only the message of the older generation, which workers drop."""
    head = then(sent(running(tasks=10)), GaveBack(generation=2, ranges=[(0, 10)]))
    assert then(head, Sent(chunks=[(0, 10, 2)])).tasks.unsent == head.tasks.open


def test_a_late_result_of_an_older_generation_does_not_make_a_sent_chunk_be_sent_again() -> None:
    head = sent(running())
    head = then(head, published(1, [3]))
    assert (len(head.tasks.open), head.tasks.unsent) == (5, [])


def test_no_chunk_is_sent_while_the_reserve_is_spent() -> None:
    head = running(granted_us=5_000)
    head = then(head, published(head.version, [0], duration_us=5_000))
    assert pending(head, POLICY) == [Reserve(1, head.quota.wanted_us)]


def test_a_package_that_waits_for_quota_is_due_when_it_may_ask_again() -> None:
    head = altered(sent(running()), ask_again_at=NOW + 0.7)
    assert due_at(head, POLICY) == NOW + 0.7


def test_a_time_to_request_quota_that_is_over_or_of_an_ended_package_makes_no_package_due() -> None:
    for over in (NOW - 1, NOW):
        assert due_at(altered(sent(running()), ask_again_at=over), POLICY) == NOW + quiet_s(POLICY)
    cancelled = altered(then(sent(running()), CancelAsked()), ask_again_at=NOW + 1)
    assert due_at(cancelled, POLICY) == NOW + 2 * POLICY.lease_s


def test_an_ended_package_settles_once() -> None:
    head = finished(running())
    assert pending(head, POLICY) == [Settle(100_000)]
    assert pending(settled(head), POLICY) == []


def test_stopped_tasks_are_waited_for_before_settling() -> None:
    head = then(sent(running()), CancelAsked())
    over = NOW + 2 * POLICY.lease_s
    assert pending(head, POLICY) == []
    assert due_at(head, POLICY) == over
    assert pending(then(head, now=over), POLICY) == [Settle(0)]


def test_a_package_settles_early_when_all_that_was_stopped_has_reported() -> None:
    head = then(sent(running(tasks=2)), CancelAsked())
    head = then(head, published(1, [0, 1], outcome="cancelled"))
    assert pending(head, POLICY) == [Settle(2_000)]


def test_an_unacknowledged_package_is_due_when_its_retention_ends() -> None:
    head = settled(finished(running()))
    assert due_at(head, POLICY) == NOW + POLICY.retention_s


def test_an_acknowledged_package_is_deleted_once_settled() -> None:
    head = then(finished(running()), Acknowledged())
    assert Delete() not in pending(head, POLICY)
    head = settled(head)
    assert pending(head, POLICY) == [Delete()]
    assert due_at(head, POLICY) == NOW + RETRY_S


def test_a_small_package_is_removed_with_its_tombstone_where_a_deletion_costs_calls() -> None:
    policy = replace(POLICY, kept_bytes=10_000)
    head = finished(running())
    for stored_bytes, effects in ((9_999, []), (10_000, [Delete()])):
        ended = then(altered(head, stored_bytes=stored_bytes), Acknowledged(), policy=policy)
        ended = then(ended, Settled(charged_us=0), policy=policy)
        assert pending(ended, policy) == effects
        if not effects:
            assert ended.life.deleted_at == NOW
            assert due_at(ended, policy) == NOW + policy.tombstone_s
            assert then(ended, now=NOW + 1, policy=policy).life.deleted_at == NOW
            assert pending(then(ended, now=NOW + policy.tombstone_s, policy=policy), policy) == [Forget()]


def test_a_small_package_becomes_a_tombstone_only_when_it_is_settled_and_acknowledged() -> None:
    policy = replace(POLICY, kept_bytes=10_000)
    head = finished(running())
    acknowledged = then(head, Acknowledged(), policy=policy)
    for needed in (then(running(), policy=policy), acknowledged, then(head, Settled(charged_us=0), policy=policy)):
        assert needed.life.deleted_at is None
    assert then(acknowledged, Settled(charged_us=0), policy=policy).life.deleted_at == NOW


def test_an_expired_package_is_deleted() -> None:
    head = then(settled(finished(running())), now=NOW + POLICY.retention_s)
    assert head.life.state == "expired"
    assert pending(head, POLICY) == [Delete()]


def test_a_tombstone_is_forgotten_after_its_time() -> None:
    head = then(settled(then(finished(running()), Acknowledged())), Deleted())
    assert pending(head, POLICY) == []
    assert due_at(head, POLICY) == NOW + POLICY.tombstone_s
    head = then(head, now=NOW + POLICY.tombstone_s)
    assert pending(head, POLICY) == [Forget()]


def test_a_running_package_without_chunks_is_due_at_the_end_of_its_lifetime() -> None:
    assert due_at(new(window=0), POLICY) == NOW + POLICY.lifetime_s


def test_an_ended_package_is_due_at_once_to_be_settled() -> None:
    assert due_at(finished(running()), POLICY) == NOW


def test_the_retention_counts_from_the_end_of_a_package_and_may_outlast_its_lifetime() -> None:
    late = NOW + POLICY.lifetime_s - 1
    head = then(settled(finished(then(running(), now=late))), now=late + 100)
    assert due_at(head, POLICY) == late + POLICY.retention_s


def test_the_timer_looks_after_a_few_pauses_whether_publications_wait() -> None:
    policy = replace(POLICY, fold_pause_s=0.25)
    head = sent(running())
    assert look_at(head, policy) == due_at(head, policy) == NOW + quiet_s(POLICY)
    late = altered(head, pauses=True)
    assert (look_at(late, policy), due_at(late, policy)) == (NOW + LATE_PAUSES * 0.25, NOW + quiet_s(POLICY))
    assert look_at(altered(running(), pauses=True), replace(policy, fold_pause_s=60.0)) == NOW + RETRY_S
