import pytest
from msgspec.structs import replace

from cloudpar_master.core.events import Acknowledged, Broken, CancelAsked, Cleared, GaveBack, Lost
from cloudpar_master.core.head import ENTRIES, GIVEN_BACK, Head, OpenRange
from cloudpar_protocol.payloads import Range
from master.core.folds import NOW, POLICY, finished, published, running, spans, take, then
from support.heads import altered


def cancel(*asked: Range) -> CancelAsked:
    return CancelAsked(ranges=list(asked))


def test_a_cancelled_package_ends_and_stops_its_running_tasks() -> None:
    head = running()
    head = then(head, published(head.version, range(5)), CancelAsked())
    assert (head.life.state, head.life.reason, head.life.message) == (
        "cancelled",
        "cancelled",
        "cancelled by its client",
    )
    assert (head.tasks.open, head.tasks.stopping, head.uncut) == ([], [(5, 40)], 0)


def test_a_stopped_task_is_charged_once_and_has_no_result() -> None:
    head = then(running(), CancelAsked())
    stopped = published(2, [3, 3, 4], outcome="cancelled", duration_us=10)
    folded = take(head, stopped, stopped)
    assert folded.results == []
    assert (folded.head.quota.used_us, folded.head.pace.execute_us) == (20, 0)
    assert then(folded.head, stopped).quota.used_us == 20


def test_the_time_of_a_cancelled_task_that_its_worker_gives_back_is_charged_once() -> None:
    """It failed for lack of something, after it had computed."""
    back = GaveBack(generation=2, ranges=[(3, 4)], used_us=500)
    for head in (then(running(), CancelAsked()), then(running(), cancel((3, 4)))):
        folded = take(head, back, back)
        assert (folded.results, folded.head.quota.used_us) == ([], 500)
        assert then(folded.head, back).quota.used_us == 500


def test_the_time_of_a_task_that_is_cancelled_after_its_worker_gave_it_back_is_charged_once() -> None:
    """Its worker repeats the give-back, because the answer was lost. Then another worker gives the task back, too."""
    first = GaveBack(generation=2, ranges=[(3, 4)], used_us=500, number=1)
    head = then(running(), first)
    second = replace(first, generation=head.version, number=2)
    for cancelled in (then(head, CancelAsked()), then(head, cancel((3, 4)))):
        repeated = then(cancelled, first)
        assert repeated.quota.used_us == 500
        assert then(cancelled, second).quota.used_us == 1_000


def test_a_package_remembers_the_last_give_backs_with_a_time() -> None:
    head = running(tasks=100)
    for number in range(1, GIVEN_BACK + 3):
        generation = head.tasks.open[0].generation
        head = then(head, GaveBack(generation=generation, ranges=[(0, 1)], used_us=number % 2, number=number))
    assert head.quota.given_back == list(range(1, GIVEN_BACK + 3, 2))
    many = altered(head, given_back=list(range(100, 100 + GIVEN_BACK)))
    back = GaveBack(generation=many.tasks.open[0].generation, ranges=[(0, 1)], used_us=1, number=7)
    assert then(many, back).quota.given_back == [*range(101, 100 + GIVEN_BACK), 7]


def test_a_task_that_finished_while_it_was_cancelled_is_charged_too() -> None:
    head = then(running(), CancelAsked())
    folded = take(head, published(2, [3], duration_us=10))
    assert folded.results == []
    assert folded.head.quota.used_us == 10


def test_tasks_that_no_worker_had_are_not_charged() -> None:
    head = then(running(), CancelAsked())
    assert then(head, published(2, [50], outcome="cancelled")).quota.used_us == 0


def test_cancelling_twice_or_after_the_end_changes_nothing() -> None:
    head = then(running(), CancelAsked())
    again = then(head, CancelAsked(reason="revoked", message="revoked"), now=NOW + 3)
    assert (again.life.reason, again.life.ended_at, again.life.settle_at) == (
        head.life.reason,
        head.life.ended_at,
        head.life.settle_at,
    )
    done = finished(running())
    assert then(done, CancelAsked(), cancel((0, 5)), CancelAsked(only_queued=True)).life.state == "completed"


def test_cancelling_some_tasks_of_an_ended_package_changes_none() -> None:
    head = then(running(), CancelAsked())
    assert then(head, cancel((50, 60)), CancelAsked(only_queued=True)).tasks == head.tasks


def test_some_tasks_are_cancelled_and_the_others_go_on() -> None:
    head = then(running(), cancel((5, 15), (50, 60)))
    assert spans(head.tasks.open) == [(0, 5), (15, 20), (20, 30), (30, 40)]
    assert (head.tasks.cancelled, head.tasks.stopping, head.tasks.done) == ([(5, 15), (50, 60)], [(5, 15)], 20)
    head = finished(head)
    assert (head.life.state, head.tasks.done, head.tasks.errors) == ("completed", 100, 0)


def test_cancelled_tasks_that_run_are_charged_until_two_leases_later() -> None:
    head = then(running(), cancel((5, 15)))
    head = then(head, published(2, [5, 6], outcome="cancelled", duration_us=10))
    assert (head.quota.used_us, head.tasks.stopping) == (20, [(7, 15)])
    assert then(head, now=NOW + 2 * POLICY.lease_s - 0.1).tasks.stopping == [(7, 15)]
    head = then(head, now=NOW + 2 * POLICY.lease_s)
    assert head.tasks.stopping == []
    assert then(head, published(2, [7], outcome="cancelled", duration_us=10)).quota.used_us == 20


def test_a_result_of_a_cancelled_task_is_dropped() -> None:
    head = then(running(), cancel((5, 6)))
    folded = take(head, published(2, [4, 5, 6]))
    assert [each.index for each in folded.results] == [4, 6]
    assert folded.head.quota.used_us == 3_000


def test_a_task_with_a_result_is_not_cancelled() -> None:
    head = running(tasks=10)
    head = then(head, published(head.version, [3]), cancel((0, 10)))
    assert head.tasks.cancelled == [(0, 3), (4, 10)]
    assert (head.life.state, head.tasks.done) == ("completed", 10)


def test_ranges_beyond_the_package_or_empty_are_ignored() -> None:
    head = then(running(), cancel((90, 200), (7, 7), (9, 3)))
    assert head.tasks.cancelled == [(90, 100)]


def test_cancelled_tasks_are_never_cut() -> None:
    head = then(running(window=1), cancel((10, 20), (25, 95)))
    seen: list[Range] = []
    while not head.life.ended:
        seen += spans(head.tasks.open)
        head = then(head, published(head.version, range(100)))
    assert seen == [(0, 10), (20, 25), (95, 100)]


def test_too_scattered_a_cancellation_is_declined_as_a_whole() -> None:
    head = running(tasks=200_000, chunksize=20, window=7_000)
    after = then(head, cancel(*[(start, start + 1) for start in range(5, 140_000, 20)]))
    assert (after.tasks.cancelled, after.tasks.stopping, after.tasks.done) == ([], [], 0)
    assert after.tasks.open == head.tasks.open


def test_a_cancellation_that_just_fits_into_the_head_is_accepted() -> None:
    """One that splits two open ranges needs six entries: two more open ranges, and two each cancelled and stopping."""
    for free, cancelled in ((6, [(1, 2), (11, 12)]), (5, [])):
        full = [OpenRange(start, start + 10, 2, sent=True) for start in range(0, 10 * (ENTRIES - free), 10)]
        head = altered(running(tasks=300_000, window=1), open=full, cursor=250_000)
        assert then(head, cancel((1, 2), (11, 12))).tasks.cancelled == cancelled


def test_the_end_of_a_lease_ends_the_wait_for_the_time_of_its_stopped_tasks() -> None:
    head = then(running(tasks=20), CancelAsked())
    head = then(head, replace(published(2, [3], outcome="cancelled", duration_us=10), closed=(0, 10)))
    assert (head.quota.used_us, head.tasks.stopping) == (10, [(10, 20)])


def test_a_give_back_that_closes_a_lease_ends_the_wait_for_the_time_of_all_its_tasks() -> None:
    head = then(running(tasks=20), CancelAsked(), GaveBack(generation=2, ranges=[(0, 4)], closed=(0, 10)))
    assert head.tasks.stopping == [(10, 20)]


def test_a_give_back_ends_the_wait_for_the_tasks_that_it_names_in_any_order_beside_those_that_it_closes() -> None:
    back = GaveBack(generation=2, ranges=[(16, 18), (12, 14)], closed=(0, 10))
    assert then(running(tasks=20), CancelAsked(), back).tasks.stopping == [(10, 12), (14, 16), (18, 20)]


def test_cancelled_ranges_may_overlap_and_come_unsorted() -> None:
    head = then(running(), cancel((50, 60), (12, 15), (5, 13)))
    assert (head.tasks.cancelled, head.tasks.stopping) == ([(5, 15), (50, 60)], [(5, 15)])


def test_a_cancellation_of_tasks_in_no_chunk_does_not_prolong_the_wait_for_the_time_of_others() -> None:
    head = then(running(), cancel((5, 15)))
    head = then(head, cancel((50, 60)), now=NOW + POLICY.lease_s)
    assert then(head, now=NOW + 2 * POLICY.lease_s).tasks.stopping == []


def test_queued_tasks_in_several_ranges_are_cancelled_if_the_head_has_an_entry_for_each() -> None:
    for free, cancelled in ((2, [(250_001, 250_002), (250_003, 250_004)]), (1, [])):
        full = [OpenRange(start, start + 10, 2, sent=True) for start in range(0, 10 * (ENTRIES - free), 10)]
        head = altered(running(tasks=300_000, window=1), open=full, cursor=250_000)
        assert then(head, cancel((250_001, 250_002), (250_003, 250_004))).tasks.cancelled == cancelled


# only queued tasks


def test_draining_spares_what_workers_have() -> None:
    head = then(running(), CancelAsked(only_queued=True))
    assert (head.life.state, head.tasks.cancelled, head.tasks.done) == ("running", [(40, 100)], 60)
    assert head.uncut == 0, "idle workers do not look at it any more"
    assert spans(head.tasks.open) == [(0, 10), (10, 20), (20, 30), (30, 40)]
    head = then(head, Cleared(generation=2, ranges=[(30, 40)]))
    assert (head.tasks.cancelled, head.tasks.done) == ([(30, 100)], 70)
    head = finished(head)
    assert (head.life.state, head.tasks.done, head.tasks.errors) == ("completed", 100, 0)


def test_a_request_to_cancel_the_queued_tasks_cancels_no_task_in_a_chunk_even_if_it_names_some() -> None:
    head = then(running(), CancelAsked(ranges=[(0, 5)], only_queued=True))
    assert (head.tasks.cancelled, head.tasks.stopping) == ([(40, 100)], [])


def test_a_package_that_is_cancelled_together_with_its_queued_tasks_counts_none_of_them() -> None:
    """Only tasks that were cancelled while the package ran count as done."""
    head = then(running(), CancelAsked(only_queued=True), CancelAsked())
    assert (head.life.state, head.tasks.cancelled, head.tasks.done) == ("cancelled", [], 0)


def test_tasks_that_come_back_to_a_draining_package_are_queued_to_be_cleared() -> None:
    head = then(running(tasks=10), CancelAsked(only_queued=True), GaveBack(generation=2, ranges=[(5, 10)]))
    assert spans(head.tasks.open) == [(0, 5), (5, 10)]
    head = then(head, Lost(start=0, end=5, generation=2, receives=4))
    assert spans(head.tasks.open) == [(0, 3), (3, 5), (5, 10)]
    assert all(chunk.generation > 2 for chunk in head.tasks.open)


def test_a_cancelled_package_does_not_wait_for_tasks_that_were_given_back() -> None:
    head = then(running(tasks=10), CancelAsked())
    assert head.tasks.stopping == [(0, 10)]
    head = then(head, GaveBack(generation=2, ranges=[(0, 4)]), GaveBack(generation=2, ranges=[(4, 10)]))
    assert (head.tasks.stopping, head.tasks.open) == ([], [])


def test_a_repeated_clearing_counts_once() -> None:
    head = then(running(), CancelAsked(only_queued=True))
    event = Cleared(generation=2, ranges=[(30, 40)])
    once = then(head, event)
    assert then(once, event).tasks.done == once.tasks.done == 70


def test_a_clearing_of_another_generation_cancels_nothing() -> None:
    head = then(running(), CancelAsked(only_queued=True))
    assert then(head, Cleared(generation=3, ranges=[(30, 40)])).tasks.done == head.tasks.done


def test_tasks_that_are_cancelled_already_count_once_when_the_queued_ones_are_cancelled() -> None:
    head = then(running(), cancel((50, 60)), CancelAsked(only_queued=True))
    assert (head.tasks.cancelled, head.tasks.done) == ([(40, 100)], 60)


def test_an_ended_package_does_not_wait_for_tasks_of_a_chunk_that_no_worker_had() -> None:
    event = Cleared(generation=2, ranges=[(10, 20)])
    head = then(running(), CancelAsked(), event)
    assert (head.tasks.stopping, head.tasks.cancelled, head.tasks.done) == ([(0, 10), (20, 40)], [(10, 20)], 10)
    assert then(head, event).tasks == head.tasks
    head = then(running(), cancel((10, 20)), CancelAsked(), event)
    assert (head.tasks.stopping, head.tasks.cancelled, head.tasks.done) == ([(0, 10), (20, 40)], [(10, 20)], 10)


def test_the_tasks_of_a_failed_package_that_no_worker_had_are_not_cancelled() -> None:
    """A client would otherwise see `cancelled` instead of the reason for which the package failed."""
    head = then(running(), Broken(message="damaged"), Cleared(generation=2, ranges=[(10, 20)]))
    assert (head.life.state, head.tasks.cancelled, head.tasks.done) == ("failed", [], 0)
    assert head.tasks.stopping == [(0, 10), (20, 40)]


def test_a_full_head_of_a_cancelled_package_records_no_tasks_that_no_worker_had() -> None:
    full = [OpenRange(start, start + 9, 2, sent=True) for start in range(0, 10 * ENTRIES, 10)]
    head = running(tasks=10 * ENTRIES)
    head.tasks.open = full
    head = then(head, CancelAsked(), Cleared(generation=2, ranges=[(3, 6)]))
    assert (len(head.tasks.stopping), head.tasks.cancelled) == (ENTRIES, [])


def test_a_draining_package_without_chunks_ends() -> None:
    head = then(running(tasks=10), CancelAsked(only_queued=True), Cleared(generation=2, ranges=[(0, 10)]))
    assert (head.life.state, head.tasks.cancelled) == ("completed", [(0, 10)])


# acknowledged packages


def test_acknowledging_a_running_package_cancels_it_first() -> None:
    head = then(running(), Acknowledged())
    assert (head.life.state, head.life.reason, head.life.acknowledged_at) == ("cancelled", "acknowledged", NOW)
    assert head.life.message == "acknowledged by its client while it ran"
    assert head.tasks.stopping == [(0, 40)]


@pytest.mark.parametrize("ended", [finished(running()), then(running(), CancelAsked())], ids=["completed", "cancelled"])
def test_acknowledging_an_ended_package_keeps_its_state(ended: Head) -> None:
    head = then(ended, Acknowledged(), now=NOW + 5)
    assert (head.life.state, head.life.acknowledged_at) == (ended.life.state, NOW + 5)
    assert then(head, Acknowledged(), now=NOW + 9).life.acknowledged_at == NOW + 5


def test_a_package_whose_last_uncut_tasks_are_cancelled_ends_although_it_has_no_time_left_to_cut_them() -> None:
    """Otherwise it would neither request time nor end, until its lifetime is over."""
    head = then(running(tasks=20, window=1, granted_us=10_000), cancel((10, 20)))
    assert then(head, published(2, range(10), duration_us=1_000)).life.state == "completed"


def test_a_package_whose_tasks_in_no_chunk_are_all_cancelled_has_none_left_to_cut() -> None:
    head = then(running(), cancel((40, 100)), published(2, range(10)))
    assert (spans(head.tasks.open), head.uncut) == ([(10, 20), (20, 30), (30, 40)], 0)
