from cloudpar_master.core.effects import Send, due_at, pending
from cloudpar_master.core.events import Event, ExecutorsIdle, GaveBack, Lost, Sent
from cloudpar_master.core.fold.resending import DAY_S, quiet_s
from cloudpar_master.core.head import Head
from cloudpar_master.core.policy import Policy
from master.core.folds import PLENTY_US, POLICY, granted, new, published, running, then
from support.heads import altered

QUIET_S = quiet_s(POLICY)


def sent(head: Head) -> Head:
    return then(head, Sent(chunks=[(chunk.start, chunk.end, chunk.generation) for chunk in head.tasks.unsent]))


def resent(head: Head, after_s: float) -> bool:
    """Whether a fold this much later sends all chunks of a head again."""
    later = then(head, now=head.now + after_s)
    return pending(later, POLICY) == [Send(later.tasks.open)]


def test_chunks_of_which_the_master_heard_nothing_for_long_are_sent_again_as_the_same_chunks() -> None:
    head = sent(running())
    assert not resent(head, QUIET_S - 1)
    again = then(head, now=head.now + QUIET_S)
    assert [(each.start, each.generation) for each in again.tasks.unsent] == [
        (each.start, each.generation) for each in head.tasks.open
    ]


def test_a_package_is_due_when_its_chunks_are_to_be_sent_again() -> None:
    head = sent(running())
    assert due_at(head, POLICY) == head.now + QUIET_S


def test_a_workers_report_puts_the_repetition_off() -> None:
    head = sent(running())
    generation = head.tasks.open[0].generation
    reports: list[Event] = [
        published(generation, [0]),
        GaveBack(generation=generation, ranges=[(0, 1)]),
        Lost(start=0, end=10, generation=generation, receives=4),
    ]
    for report in reports:
        assert not resent(sent(then(head, report, now=head.now + QUIET_S - 1)), QUIET_S - 1)


def test_idle_workers_do_not_put_the_repetition_off() -> None:
    head = sent(running())
    later = then(head, ExecutorsIdle(executors=1), now=head.now + QUIET_S)
    assert len(later.tasks.unsent) == len(later.tasks.open) > len(head.tasks.open)


def test_repetitions_become_rarer_up_to_one_a_day() -> None:
    head, waits = sent(running()), []
    for _ in range(9):
        at = due_at(head, POLICY)
        waits.append(at - head.now)
        head = sent(then(head, now=at))
    assert waits[:3] == [QUIET_S, QUIET_S, 2 * QUIET_S]
    assert waits[-1] == DAY_S


def test_a_package_that_waited_long_without_chunks_gets_the_whole_time_for_its_first_ones() -> None:
    head = new(window=0)
    assert head.tasks.open == []
    head = then(head, ExecutorsIdle(executors=1), now=head.now + 10 * QUIET_S)
    head = sent(granted(head, PLENTY_US))
    assert head.tasks.open
    assert not resent(head, QUIET_S - 1)
    assert resent(head, QUIET_S)


def test_a_head_of_an_earlier_release_is_folded_once_and_nothing_is_sent_again_then() -> None:
    head = altered(sent(running()), heard_at=0.0, resend_at=0.0)
    assert due_at(head, POLICY) <= head.now
    later = then(head, now=head.now + 10 * QUIET_S)
    assert pending(later, POLICY) == []
    assert due_at(later, POLICY) == later.now + QUIET_S


def test_no_chunk_is_sent_again_while_its_tasks_may_still_run() -> None:
    assert quiet_s(Policy(task_timeout_s=100.0)) > 100.0
