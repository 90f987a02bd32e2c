"""The head stays small, even if workers and clients send the worst; and tasks that it declines are done in the end."""

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudpar_master.core.events import CancelAsked, Cleared, Event, ExecutorsIdle, GaveBack, Lost, Published
from cloudpar_master.core.fold.open_ranges import HALVINGS, SMALL_WINDOW
from cloudpar_master.core.head import (
    ENTRIES,
    FAILED_RANGES,
    FLEET,
    HEAD_BYTES,
    HOST_BYTES,
    LACKS_BYTES,
    MESSAGE_BYTES,
    SET_ASIDE,
    Head,
    Member,
    OpenRange,
    stored,
)
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.limits import PACKAGE_TASKS
from cloudpar_protocol.payloads import Unfit
from master.core.folds import NOW, PLENTY_US, granted, new, published, spans, take, then
from support.heads import altered, make_head

POLICY = Policy()
FEW_ENTRIES, FEW_RESERVED = 560, 120
"""In most of these tests a head has room for so many entries only, because these are soon used up."""

MOST_ENTRIES = FEW_ENTRIES + HALVINGS + SMALL_WINDOW
LONG_NAME = "\N{GRINNING FACE}" * 200


@pytest.fixture(autouse=True, scope="module")
def _few_entries() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloudpar_master.core.head.tasks.ENTRIES", FEW_ENTRIES)
        patch.setattr("cloudpar_master.core.fold.open_ranges.ENTRIES", FEW_ENTRIES)
        patch.setattr("cloudpar_master.core.fold.open_ranges.RESERVED", FEW_RESERVED)
        yield


def bounded(head: Head) -> Head:
    assert len(head.tasks.open) + len(head.tasks.cancelled) + len(head.tasks.stopping) <= MOST_ENTRIES
    assert len(stored.encode(head)) < HEAD_BYTES
    return head


def running(tasks: int = PACKAGE_TASKS, chunksize: int = 25_000, window: int = POLICY.largest_window) -> Head:
    return granted(new(tasks, chunksize=chunksize, window=window, name=LONG_NAME), PLENTY_US)


def every_other(chunk: OpenRange, most: int = 1_000) -> Event:
    return published(chunk.generation, range(chunk.start + 1, chunk.end, 2)[:most], outcome="error", duration_us=1)


def scattered_return(chunk: OpenRange) -> Event:
    ranges = [(start, start + 1) for start in range(chunk.start + 1, chunk.end, 2)[:1_000]]
    return GaveBack(generation=chunk.generation, ranges=ranges)


def scattered_clearing(chunk: OpenRange) -> Event:
    return Cleared(generation=chunk.generation, ranges=[(chunk.start + 1, chunk.start + 2), (chunk.end - 2, chunk.end)])


def loss(chunk: OpenRange) -> Event:
    return Lost(start=chunk.start, end=chunk.end, generation=chunk.generation, receives=4)


def scattered_cancel(chunk: OpenRange) -> Event:
    return CancelAsked(ranges=[(chunk.start + step, chunk.start + step + 1) for step in range(1, 40, 4)])


def middle_result(chunk: OpenRange) -> Event:
    return published(chunk.generation, [(chunk.start + chunk.end) // 2], worker_id=f"{chunk.start}{LONG_NAME}")


NUISANCES: list[Callable[[OpenRange], Event]] = [
    every_other, scattered_return, scattered_clearing, loss, scattered_cancel, middle_result,
]  # fmt: skip


def test_the_largest_possible_head_fits() -> None:
    """Every field is at its widest, and the lists are as long as they can be, of the largest entries."""
    most = 2**62
    chunks = [OpenRange(PACKAGE_TASKS - 2, PACKAGE_TASKS - 1, 2**32 - 1)] * (ENTRIES + HALVINGS + SMALL_WINDOW)
    head = make_head(
        "f" * 32, "f" * 16, PACKAGE_TASKS, NOW, name=LONG_NAME, version=2**32 - 1, state="cancelled",
        reason="acknowledged", message="m" * MESSAGE_BYTES, chunksize=2**63 - 1,
        cursor=PACKAGE_TASKS, open=chunks, done=PACKAGE_TASKS, errors=PACKAGE_TASKS, used_us=most, reserved_us=most,
        failed=[(PACKAGE_TASKS - 2, PACKAGE_TASKS - 1)] * FAILED_RANGES,
        next_slice=2**32 - 1, wanted_us=most, ask_again_at=NOW,
        mean_us=1.5, measured=PACKAGE_TASKS, execute_us=most, retrieve_us=most, publish_us=most,
        fleet={2**32 - 1 - number: Member(10_000, NOW) for number in range(FLEET)},
        most_executors=2**32 - 1, page=2**32 - 1, ended_at=NOW, settle_at=NOW, acknowledged_at=NOW,
        deleted_at=NOW, window=2**16, window_since=2**32 - 1,
        python="3.14", set_aside=[Unfit("h" * HOST_BYTES, "l" * LACKS_BYTES)] * SET_ASIDE,
        stranded_at=NOW, run_anyway=True,
    )  # fmt: skip
    assert len(stored.encode(head)) < HEAD_BYTES


@pytest.mark.parametrize("nuisance", NUISANCES, ids=[each.__name__ for each in NUISANCES])
def test_the_head_stays_small_under_one_kind_of_nuisance(nuisance: Callable[[OpenRange], Event]) -> None:
    head = running()
    for _ in range(3):
        for chunk in list(head.tasks.open)[::11]:
            head = bounded(then(head, nuisance(chunk)))


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_head_stays_small_under_all_kinds_of_nuisance(chance: random.Random) -> None:
    head = running(chunksize=chance.choice([50, 4_000, 25_000]))
    for _ in range(25):
        if head.life.ended:
            break
        chunks = [chance.choice(head.tasks.open) for _ in range(chance.randint(1, 25))] if head.tasks.open else []
        events = [chance.choice(NUISANCES)(chunk) for chunk in chunks]
        head = bounded(then(head, *events, ExecutorsIdle(executors=10_000), now=head.now + chance.random()))
    head = bounded(then(head, CancelAsked()))
    stopped = [span[0] for span in head.tasks.stopping] + [sum(span) // 2 for span in head.tasks.stopping]
    bounded(then(head, published(0, stopped, outcome="cancelled")))


def test_declined_results_are_queued_again_and_a_worker_in_order_finishes_them() -> None:
    head = running(tasks=40_000, chunksize=100)
    committed: set[int] = set()
    declined = 0
    for chunk in list(head.tasks.open):
        folded = take(head, every_other(chunk))
        committed |= {result.index for result in folded.results}
        declined += not folded.results
        head = bounded(folded.head)
    assert declined > 300
    assert spans(head.tasks.unsent)[-1] == (39_900, 40_000)
    while not head.life.ended:
        chunk = head.tasks.open[0]
        folded = take(head, published(chunk.generation, range(chunk.start, chunk.end)))
        assert not committed & {result.index for result in folded.results}
        committed |= {result.index for result in folded.results}
        head = bounded(folded.head)
    assert (head.life.state, len(committed)) == ("completed", 40_000)


def test_results_in_order_are_never_declined() -> None:
    head = running(tasks=40_000, chunksize=100)
    for chunk in list(head.tasks.open):
        head = then(head, every_other(chunk))
    before = len(head.tasks.open)
    last = head.tasks.open[-1]
    folded = take(head, published(last.generation, range(last.start, last.start + 5)))
    assert len(folded.results) == 5
    assert len(folded.head.tasks.open) == before


def test_a_result_from_the_middle_of_a_chunk_needs_one_free_entry_and_one_from_its_edge_none() -> None:
    for free, index, committed in ((1, 5, 1), (0, 5, 0), (0, 0, 1), (0, 9, 1), (-1, 0, 1)):
        full = [OpenRange(start, start + 10, 2, sent=True) for start in range(0, 10 * (FEW_ENTRIES - free), 10)]
        folded = take(altered(running(tasks=10_000, window=1), open=full, cursor=9_000), published(2, [index]))
        assert len(folded.results) == committed


@pytest.mark.parametrize("event", [GaveBack(generation=2, ranges=[(5, 6)]), Cleared(generation=2, ranges=[(5, 6)])])
def test_a_task_taken_from_the_middle_of_a_chunk_needs_an_entry_of_its_own_beside_the_two_of_the_rest(
    event: Event,
) -> None:
    """If the head has less room, the whole chunk is queued again."""
    for free, first in ((2, (0, 5, 2)), (1, (0, 10, 3))):
        full = [OpenRange(start, start + 10, 2, sent=True) for start in range(0, 10 * (FEW_ENTRIES - free), 10)]
        head = altered(running(tasks=10_000, window=1), open=full, cursor=9_000)
        head = altered(then(head, event), version=2)
        assert (head.tasks.open[0].start, head.tasks.open[0].end) == first[:2]
        assert (head.tasks.open[0].generation == 2) == (first[2] == 2)
        assert head.tasks.free_entries == (0 if free == 2 else 1)


def test_a_head_without_room_waits_for_the_time_of_the_first_stopped_tasks_only() -> None:
    for free, stopping in ((1, [(9_000, 9_005), (9_006, 9_010)]), (0, [(9_000, 9_005)]), (-1, [(9_000, 9_005)])):
        full = [OpenRange(start, start + 10, 2, sent=True) for start in range(0, 10 * (FEW_ENTRIES - free - 1), 10)]
        head = altered(running(tasks=10_000, window=1), open=full, cursor=9_500, stopping=[(9_000, 9_010)])
        head = then(altered(head, settle_at=NOW + 60), published(2, [9_005], outcome="cancelled"))
        assert head.tasks.stopping == stopping


def full(free: int) -> Head:
    """Return a head with room for this many more entries, all of whose open ranges have 10 tasks."""
    opened = [OpenRange(start, start + 10, 2, sent=True) for start in range(0, 10 * (FEW_ENTRIES - free), 10)]
    return altered(running(tasks=10_000, chunksize=1, window=1), open=opened, cursor=9_000)


def test_declined_results_leave_the_chunks_between_them_with_their_workers() -> None:
    head = then(full(free=0), published(2, [5, 25]))
    assert [(each.start, each.generation == 2, each.sent) for each in head.tasks.open[:4]] == [
        (0, False, False), (10, True, True), (20, False, False), (30, True, True),
    ]  # fmt: skip


@pytest.mark.parametrize(("place", "free", "halved"), [(1, 0, False), (1, 1, True), (0, 0, True)])
def test_a_lost_chunk_is_halved_if_the_head_has_room_and_the_first_one_always(
    place: int, free: int, halved: bool
) -> None:
    head = full(free)
    lost = head.tasks.open[place]
    assert spans(then(head, loss(lost)).tasks.unsent) == (
        [(lost.start, lost.start + 5), (lost.start + 5, lost.end)] if halved else [(lost.start, lost.end)]
    )


def test_a_chunk_that_is_given_back_uses_half_of_the_entries_that_are_left() -> None:
    head = then(full(free=5), GaveBack(generation=2, ranges=[(0, 10)]))
    assert spans(head.tasks.unsent) == [(0, 4), (4, 7), (7, 9), (9, 10)]
    assert head.tasks.free_entries == 2


def test_tasks_that_are_given_back_become_at_most_twice_as_many_chunks_as_the_largest_window() -> None:
    policy = Policy(largest_window=4)
    head = granted(new(100, chunksize=100, window=1), PLENTY_US)
    head = altered(head, chunksize=1)
    whole = then(head, GaveBack(generation=2, ranges=[(0, 100)]), policy=policy)
    assert 6 <= len(whole.tasks.open) <= 8
    several = then(head, GaveBack(generation=2, ranges=[(0, 30), (35, 60), (65, 90)]), policy=policy)
    assert spans(several.tasks.unsent) == [(0, 30), (35, 60), (65, 90)]
    late = then(head, GaveBack(generation=2, ranges=[(0, 1), (35, 90)]), policy=policy)
    assert spans(late.tasks.unsent) == [(0, 1), (35, 63), (63, 77), (77, 90)]


@pytest.mark.parametrize("field", ["cancelled", "stopping"])
def test_cancelled_and_stopping_ranges_leave_less_room_for_chunks(field: str) -> None:
    scattered = [(start, start + 1) for start in range(5_000, 5_600, 2)]
    head = altered(running(tasks=10_000, chunksize=1, window=1), settle_at=NOW + 60, window=400, **{field: scattered})
    assert len(then(head).tasks.open) == FEW_ENTRIES - FEW_RESERVED - 300


def test_tasks_that_all_kill_their_workers_all_fail() -> None:
    """Depth first: if the head has room for no other halves, it still has room for those of the first range."""
    head = running(tasks=1_200, chunksize=3)
    rounds = 0
    while not head.life.ended:
        head = bounded(then(head, *map(loss, head.tasks.open)))
        rounds += 1
    assert (head.life.state, head.tasks.errors, head.tasks.done) == ("completed", 1_200, 1_200)
    assert rounds < 100


def test_a_refusal_of_any_length_fits() -> None:
    event = Published(worker_id="w", executors=1, generation=2, results=[], refused="python", message=LONG_NAME * 100)
    bounded(then(running(), event))


def test_a_package_with_many_cancelled_tasks_goes_on_in_small_steps() -> None:
    head = running(tasks=4_000, chunksize=1, window=8)
    while head.tasks.free_entries > 20:
        start = head.tasks.cursor
        head = then(head, CancelAsked(ranges=[(start + step, start + step + 1) for step in range(1, 20, 2)]))
        head = bounded(then(head, *[published(chunk.generation, [chunk.start]) for chunk in head.tasks.open]))
    while not head.life.ended:
        assert head.tasks.open
        head = bounded(then(head, *[published(chunk.generation, [chunk.start]) for chunk in head.tasks.open]))
    assert head.life.state == "completed"


def test_a_full_head_can_halve_the_largest_chunk_until_it_has_one_task() -> None:
    assert 2 ** (HALVINGS - 1) < PACKAGE_TASKS <= 2**HALVINGS
