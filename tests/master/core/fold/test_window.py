from msgspec.structs import replace

from cloudpar_master.core.effects import pending
from cloudpar_master.core.events import ExecutorsIdle
from cloudpar_master.core.fold.open_ranges import RESERVED
from cloudpar_master.core.head import ENTRIES, Member
from master.core.folds import NOW, PLENTY_US, POLICY, granted, new, published, running, spans, take, then
from support.heads import altered


def test_the_window_is_refilled_as_chunks_finish() -> None:
    head = running()
    head = then(head, published(head.version, range(10), wait_us=100_000))
    assert spans(head.tasks.open) == [(10, 20), (20, 30), (30, 40), (40, 50)]


def test_the_window_grows_while_chunks_hardly_wait() -> None:
    head = running(tasks=1_000)
    head = then(head, published(head.version, range(10), wait_us=0, executors=3))
    assert (head.pace.window, len(head.tasks.open)) == (8, 8)
    head = then(head, published(head.version, range(10, 80), wait_us=0, executors=3))
    assert (head.pace.window, len(head.tasks.open)) == (11, 11)


def test_the_window_changes_once_for_chunks_of_one_time() -> None:
    head = running(tasks=1_000)
    generation = head.version
    head = then(head, published(generation, range(10), wait_us=0))
    for index in range(10, 40):
        head = then(head, published(generation, [index], wait_us=0))
    assert head.pace.window == 6
    assert then(head, published(head.pace.window_since, range(40, 50), wait_us=0)).pace.window == 8


def test_idle_executors_widen_the_window_at_once() -> None:
    head = running(tasks=1_000)
    head = then(head, ExecutorsIdle(executors=7))
    assert (head.pace.window, len(head.tasks.open)) == (11, 11)
    assert then(head, ExecutorsIdle(executors=1)).pace.window == 12
    head = then(head, ExecutorsIdle(executors=10_000))
    assert len(head.tasks.open) == 100


def test_idle_executors_widen_the_window_as_far_as_the_head_has_room() -> None:
    head = running(tasks=200_000)
    for _ in range(4):
        head = then(head, ExecutorsIdle(executors=5_000))
    assert len(head.tasks.open) == ENTRIES - RESERVED


def test_an_explicit_chunksize_is_kept_to_the_end() -> None:
    head = running(tasks=95, chunksize=30, window=10)
    assert spans(head.tasks.open) == [(0, 30), (30, 60), (60, 90), (90, 95)]


def test_a_chunksize_beyond_the_package_is_the_package() -> None:
    assert spans(running(tasks=95, chunksize=2**63 - 1).tasks.open) == [(0, 95)]


def test_tasks_that_take_no_measurable_time_are_cut_into_large_chunks() -> None:
    head = running(tasks=10_000_000, chunksize=None)
    folded = take(head, published(head.version, range(16), duration_us=0))
    assert {chunk.end - chunk.start for chunk in folded.head.tasks.open[-1:]} == {200_000}


def test_a_closed_package_holds_nothing_until_executors_idle() -> None:
    head = new(tasks=1_000, window=0)
    assert head.pace.closed
    assert (head.tasks.open, pending(head, POLICY)) == ([], [])
    head = then(head, ExecutorsIdle(executors=1))
    assert head.pace.window == POLICY.first_window
    assert len(granted(head, PLENTY_US).tasks.open) == POLICY.first_window


def test_idle_executors_do_not_narrow_a_window() -> None:
    head = then(running(tasks=100, window=50), ExecutorsIdle(executors=1))
    assert (len(head.tasks.open), head.pace.window) == (10, 50)


def test_idle_executors_widen_the_window_to_no_more_than_the_operator_permits() -> None:
    policy = replace(POLICY, largest_window=12)
    assert then(running(tasks=1_000), ExecutorsIdle(executors=100), policy=policy).pace.window == 12


def test_where_chunks_are_shared_idle_workers_widen_the_window_by_a_chunk_each() -> None:
    """While durations are unknown, chunks are for one executor each, as in a new package."""
    policy = replace(POLICY, shares_chunks=True, first_window=32)
    head = altered(running(tasks=1_000, policy=policy), fleet={1: Member(4, NOW)})
    widened = [then(altered(head, measured=measured), ExecutorsIdle(executors=8), policy=policy) for measured in (0, 9)]
    assert [each.pace.window for each in widened] == [32, 4 + 2]


def test_a_publication_without_new_results_leaves_the_window() -> None:
    """Two workers ran the same tasks, and the second one's chunk hardly waited."""
    head = running(tasks=1_000)
    first, late = published(head.version, range(10)), published(head.version, range(10), wait_us=0)
    head = then(head, first)
    assert then(head, late).pace.window == head.pace.window == 4


def test_a_wait_that_leaves_the_window_as_it_is_does_not_keep_chunks_of_that_time_from_changing_it() -> None:
    head = running(tasks=1_000)
    generation = head.version
    head = then(head, published(generation, range(10)))
    assert then(head, published(generation, range(10, 20), wait_us=0)).pace.window > head.pace.window


def test_the_most_executors_that_a_package_has_had_are_remembered() -> None:
    """Its window may stay as large as they permitted, while their tasks last long."""
    head = running()
    one, two = (published(2, [index], worker_id=f"w{index}", executors=4 - index) for index in (0, 1))
    head = then(head, one, two)
    assert head.pace.most_executors == 7
    head = then(head, published(2, [2], worker_id="w0", executors=1), now=NOW + 2 * POLICY.fleet_memory_s)
    assert (head.pace.executors, head.pace.most_executors) == (1, 7)
    head = then(head, ExecutorsIdle(executors=10_000))
    most = head.pace.most_executors
    assert then(head, ExecutorsIdle(executors=1)).pace.most_executors == most > 10_000
