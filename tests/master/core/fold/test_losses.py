import pytest

from cloudpar_master.core.events import Event, GaveBack, Lost
from cloudpar_master.core.head import Head
from master.core.folds import published, running, spans, take, then


def lost(start: int, end: int, generation: int) -> Lost:
    return Lost(start=start, end=end, generation=generation, receives=4)


def chunks(head: Head) -> list[tuple[int, int, int]]:
    return [(chunk.start, chunk.end, chunk.generation) for chunk in head.tasks.open]


def test_a_lost_chunk_is_halved_and_queued_as_a_new_generation() -> None:
    head = running(tasks=10)
    head = then(head, lost(0, 10, head.version))
    assert chunks(head) == [(0, 5, head.version), (5, 10, head.version)]
    assert head.tasks.unsent == head.tasks.open


def test_a_single_task_that_was_lost_fails_and_the_others_go_on() -> None:
    head = running(tasks=2, chunksize=1)
    folded = take(head, lost(0, 1, head.version))
    (result,) = folded.results
    assert (result.index, result.outcome, result.duration_us) == (0, "lost", 0)
    assert result.message == (
        "its worker was lost 4 times while it had this task, or could not send its result: it brings its worker down "
        "(give it more memory), outlasts what spot instances live (split it), or a proxy refuses its result (see the "
        "worker's log)"
    )
    assert (folded.head.tasks.errors, folded.head.tasks.failed, folded.head.quota.used_us) == (1, [(0, 1)], 0)
    assert spans(folded.head.tasks.open) == [(1, 2)]


def test_a_task_that_kills_its_workers_is_alone_after_few_losses() -> None:
    head = running(tasks=64, chunksize=64)
    rounds = 0
    while not head.tasks.errors:
        (killer,) = [chunk for chunk in head.tasks.open if chunk.start <= 42 < chunk.end]
        head = then(head, lost(killer.start, killer.end, killer.generation))
        rounds += 1
    assert head.tasks.failed == [(42, 43)]
    assert rounds == 7


def test_a_task_that_is_left_of_a_lost_chunk_gets_tries_of_its_own() -> None:
    """Its workers may have been lost because of the other tasks, which have results now."""
    head = running(tasks=10)
    generation = head.version
    head = then(head, published(generation, range(9)), lost(0, 10, generation))
    assert [(chunk.start, chunk.end, chunk.losses) for chunk in head.tasks.open] == [(9, 10, 0)]
    assert head.tasks.open[0].generation != generation
    alone = head.tasks.open[0]
    assert then(head, lost(9, 10, alone.generation)).tasks.failed == [(9, 10)]


def test_a_task_that_a_give_back_puts_into_a_chunk_of_its_own_counts_from_0_once() -> None:
    head = running(tasks=10)
    head = then(head, GaveBack(generation=head.version, ranges=[(4, 5)], losses=3))
    assert [(chunk.start, chunk.end, chunk.losses) for chunk in head.tasks.open] == [(0, 4, 0), (4, 5, 0), (5, 10, 0)]
    head = then(head, GaveBack(generation=head.version, ranges=[(4, 5)], losses=3))
    assert [(chunk.start, chunk.end, chunk.losses) for chunk in head.tasks.open] == [(0, 4, 0), (4, 5, 3), (5, 10, 0)]


def test_losses_are_taken_after_all_other_events_of_a_fold() -> None:
    head = running(tasks=10)
    folded = take(head, lost(0, 10, head.version), published(head.version, range(10)))
    assert len(folded.results) == 10
    assert folded.head.life.state == "completed"


def test_a_loss_of_another_generation_changes_nothing() -> None:
    head = running(tasks=10)
    after = then(head, lost(0, 10, head.version - 1), lost(0, 10, head.version + 5))
    assert after.tasks.open == head.tasks.open


@pytest.mark.parametrize("event", [lost(0, 10, 2), GaveBack(generation=2, ranges=[(5, 10)])], ids=["loss", "give-back"])
def test_a_repeated_loss_or_give_back_counts_once(event: Event) -> None:
    head = running(tasks=10)
    once = then(head, event)
    assert then(once, event).tasks.open == once.tasks.open
    assert then(head, event, event).tasks.open == once.tasks.open


def test_tasks_given_back_are_cut_into_new_chunks() -> None:
    head = running(tasks=10)
    head = then(head, GaveBack(generation=head.version, ranges=[(6, 10)]))
    assert chunks(head) == [(0, 6, 2), (6, 10, 3)]
    assert spans(head.tasks.unsent) == [(6, 10)]


def test_tasks_given_back_are_cut_in_chunks_of_the_current_size() -> None:
    head = running(tasks=400, chunksize=None, window=1)
    head = then(head, published(head.version, range(400), duration_us=100))
    large = head.tasks.open[-1]
    assert large.end - large.start >= 99
    slow = published(large.generation, [large.start], duration_us=10**8)
    head = then(head, slow, GaveBack(generation=large.generation, ranges=[(large.start + 1, large.end)]))
    assert {chunk.end - chunk.start for chunk in head.tasks.open if chunk.generation == head.version} == {1}


def test_the_time_of_a_task_that_its_worker_gives_back_is_charged_once() -> None:
    """It failed for lack of something, after it had computed."""
    back = GaveBack(generation=2, ranges=[(5, 6)], used_us=500)
    head = then(running(tasks=10), back)
    assert head.quota.used_us == then(head, back).quota.used_us == 500


def test_given_back_ranges_may_overlap_and_come_unsorted() -> None:
    head = running(tasks=10)
    head = then(head, GaveBack(generation=head.version, ranges=[(8, 10), (5, 9), (5, 5)]))
    assert spans(head.tasks.open) == [(0, 5), (5, 10)]


def test_a_result_of_a_given_back_task_still_counts() -> None:
    head = running(tasks=10)
    head = then(head, GaveBack(generation=head.version, ranges=[(5, 10)]))
    folded = take(head, published(2, range(10)))
    assert len(folded.results) == 10
    assert folded.head.life.state == "completed"


def test_tasks_given_back_keep_their_losses_until_they_are_halved() -> None:
    head = running(tasks=10)
    head = then(head, GaveBack(generation=2, ranges=[(0, 10)], losses=2))
    assert [chunk.losses for chunk in head.tasks.open] == [2]
    # One task has a result. A worker of an old release, which does not report losses, gives others back.
    head = then(head, published(head.version, [0]), GaveBack(generation=head.version, ranges=[(6, 10)]))
    assert [(chunk.start, chunk.end, chunk.losses) for chunk in head.tasks.open] == [(1, 6, 2), (6, 10, 2)]
    first = head.tasks.open[0]
    head = then(head, lost(first.start, first.end, first.generation))
    assert [(chunk.start, chunk.end, chunk.losses) for chunk in head.tasks.open] == [(1, 4, 0), (4, 6, 0), (6, 10, 2)]


def test_a_first_task_that_a_give_back_puts_into_a_chunk_of_its_own_counts_from_0_too() -> None:
    head = then(running(tasks=10), GaveBack(generation=2, ranges=[(0, 1)], losses=3))
    assert [(chunk.start, chunk.end, chunk.losses) for chunk in head.tasks.open] == [(0, 1, 0), (1, 10, 0)]


def test_tasks_that_a_give_back_closes_without_naming_them_are_queued_again_with_one_more_loss() -> None:
    """Otherwise a task whose result is refused each time would run again and again."""
    head = then(running(tasks=10), GaveBack(generation=2, ranges=[(0, 4)], losses=1, closed=(0, 10)))
    assert [(chunk.start, chunk.end, chunk.losses) for chunk in head.tasks.open] == [(0, 4, 1), (4, 10, 2)]
    again = then(head, GaveBack(generation=3, ranges=[], closed=(0, 10)))
    assert [(chunk.start, chunk.end, chunk.losses) for chunk in again.tasks.open] == [(0, 4, 2), (4, 10, 3)]
