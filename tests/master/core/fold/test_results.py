from msgspec.structs import replace

from cloudpar_master.core.events import Published
from cloudpar_master.core.head import BLOB_BYTES, FLEET, number_of
from cloudpar_master.core.quota import MOST_US
from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import BlobRef, TaskResult
from master.core.folds import NOW, POLICY, finished, published, result, running, spans, take, then


def test_a_new_package_opens_its_window_once_it_has_compute_time() -> None:
    head = running(tasks=100, chunksize=10, window=4)
    assert spans(head.tasks.open) == [(0, 10), (10, 20), (20, 30), (30, 40)]
    assert (head.tasks.cursor, head.life.state, head.tasks.done) == (40, "running", 0)


def test_results_are_committed_counted_and_charged() -> None:
    head = running()
    folded = take(head, published(head.version, [0, 1, 2], duration_us=50))
    assert [each.index for each in folded.results] == [0, 1, 2]
    assert folded.head.page == folded.head.version
    assert (folded.head.tasks.done, folded.head.quota.used_us, folded.head.pace.execute_us) == (3, 150, 150)
    assert spans(folded.head.tasks.open)[0] == (3, 10)


def test_the_first_result_of_a_task_wins() -> None:
    head = running()
    event = published(head.version, [0, 1])
    rival = published(head.version, [1, 2], duration_us=7, worker_id="other")
    folded = take(head, event, rival, event)
    assert [each.index for each in folded.results] == [0, 1, 2]
    assert folded.head.quota.used_us == 2_000 + 7


def test_a_task_published_twice_in_one_publication_counts_once() -> None:
    head = running()
    event = Published(worker_id="w", executors=1, generation=head.version, results=[result(0, 5), result(0, 9)])
    folded = take(head, event)
    assert (len(folded.results), folded.head.tasks.done, folded.head.quota.used_us) == (1, 1, 5)


def test_results_of_tasks_that_were_never_cut_are_ignored() -> None:
    head = running(tasks=100, window=2)
    folded = take(head, published(head.version, [20, 99, 100, 10_000]))
    assert folded.results == []
    assert folded.head.quota.used_us == 0


def test_results_out_of_order_leave_the_gaps_open() -> None:
    head = running(tasks=10)
    head = then(head, published(head.version, [5, 1, 7]))
    assert spans(head.tasks.open) == [(0, 1), (2, 5), (6, 7), (8, 10)]
    assert {chunk.generation for chunk in head.tasks.open} == {2}


def test_the_last_result_completes_the_package() -> None:
    head = finished(running())
    assert (head.life.state, head.client_state, head.tasks.done, head.life.ended_at) == (
        "completed",
        "completed",
        100,
        NOW,
    )
    assert head.life.reason is None


def test_a_fold_without_results_keeps_the_number_of_the_last_page() -> None:
    head = running()
    head = then(head, published(head.version, [0]))
    assert then(head).page == head.page == head.version


def test_the_bytes_of_results_count_as_stored_and_those_of_uploads_even_without_a_result() -> None:
    head = running(tasks=10)
    texts = TaskResult(0, "ok", 1, data=b"12345", message="m", traceback="t", stdout="o", stderr="e", input="i")
    event = Published(worker_id="w", executors=1, generation=head.version, results=[texts])
    head = then(head, event)
    assert head.life.stored_bytes == 20 + 5 + 5
    uploaded = [TaskResult(index, "ok", 1, blob=BlobRef("results/p/l/0", 1_000)) for index in (0, 1)]
    head = then(head, replace(event, results=uploaded))
    assert head.life.stored_bytes == 30 + 20 + 2 * (1_000 + BLOB_BYTES)  # the first one's task had a result already


def test_a_package_with_errors_completes_and_names_the_failed_tasks() -> None:
    head = running(tasks=10)
    head = then(head, published(head.version, [2, 3, 7], outcome="error"))
    head = finished(head)
    assert (head.life.state, head.client_state) == ("completed", "error")
    assert (head.tasks.errors, head.tasks.failed) == (3, [(2, 4), (7, 8)])


def test_an_error_is_charged_like_a_result() -> None:
    outcomes: tuple[Outcome, ...] = ("error", "timeout", "quota", "crashed", "memory", "unpicklable")
    head = running(tasks=20)
    for index, outcome in enumerate(outcomes):
        head = then(head, published(head.version, [index], outcome=outcome, duration_us=10))
    assert (head.tasks.errors, head.quota.used_us) == (len(outcomes), 10 * len(outcomes))


def test_at_most_a_hundred_failed_ranges_are_kept_but_all_are_counted() -> None:
    head = running(tasks=1_000, chunksize=1, window=400)
    head = then(head, published(head.version, range(0, 400, 2), outcome="error"))
    assert len(head.tasks.failed) == 100
    assert head.tasks.errors == 200


def test_tasks_that_a_worker_wrongly_took_for_cancelled_are_given_back() -> None:
    """A worker stops a task that it takes for unwanted. If it is wrong, the task must run elsewhere."""
    head = running(tasks=10)
    folded = take(head, published(head.version, [4, 4, 5], outcome="cancelled"))
    assert folded.results == []
    assert (folded.head.quota.used_us, folded.head.tasks.done, folded.head.tasks.errors) == (0, 0, 0)
    assert [(p.start, p.end, p.generation) for p in folded.head.tasks.open] == [(0, 4, 2), (4, 6, 3), (6, 10, 2)]
    assert [p.losses for p in folded.head.tasks.open] == [0, 0, 0]


def test_stopped_tasks_far_apart_are_all_given_back() -> None:
    head = then(running(tasks=10), published(2, [8, 1], outcome="cancelled"))
    assert spans(head.tasks.open) == [(0, 1), (1, 2), (2, 8), (8, 9), (9, 10)]
    assert spans(head.tasks.unsent) == [(1, 2), (8, 9)]


def test_a_worker_of_an_older_generation_that_stops_a_task_does_not_take_it_from_its_new_holder() -> None:
    head = running(tasks=10)
    folded = take(head, published(head.version - 1, [4], outcome="cancelled"))
    assert spans(folded.head.tasks.open) == [(0, 10)]
    assert folded.results == []


def test_tasks_that_a_closed_lease_leaves_without_a_result_are_queued_again() -> None:
    head = running(tasks=10, chunksize=10)
    event = replace(published(head.version, [0, 1, 3]), closed=(0, 10))
    closed = then(head, event)
    assert [(each.start, each.end, each.losses) for each in closed.tasks.open] == [(2, 3, 1), (4, 10, 1)]
    assert all(each.generation > head.version and not each.sent for each in closed.tasks.open)
    assert then(closed, event).tasks.open == closed.tasks.open


def test_the_mean_is_that_of_the_last_tasks() -> None:
    head = running(tasks=10_000, chunksize=1_000)
    head = then(head, published(head.version, range(100), duration_us=10))
    assert head.pace.mean_us == 10.0
    head = then(head, published(2, range(100, 200), duration_us=30))
    assert head.pace.mean_us == 20.0
    head = then(head, published(2, range(200, 1_000), duration_us=500))
    assert head.pace.mean_us == 500.0
    head = then(head, published(2, [1_000], duration_us=500 + 256))
    assert head.pace.mean_us == 501.0


def test_a_stopped_task_says_nothing_of_how_long_tasks_take() -> None:
    head = running()
    head = then(head, published(head.version, [0], outcome="timeout", duration_us=10**9))
    assert (head.pace.mean_us, head.pace.measured) == (0.0, 0)


def test_workers_count_for_as_long_as_they_publish() -> None:
    head = running()
    head = then(head, published(head.version, [0], worker_id="one", executors=4))
    later = NOW + POLICY.fleet_memory_s
    head = then(head, published(2, [1], worker_id="two", executors=3), now=later)
    assert head.pace.executors == 7
    head = then(head, published(2, [2], worker_id="two", executors=3), now=later + 1)
    assert set(head.pace.fleet) == {number_of("two")}


def test_a_package_that_has_had_many_workers_remembers_it_when_they_leave() -> None:
    policy = replace(POLICY, many_workers=2)
    head = then(running(), published(1, [0], worker_id="one"), policy=policy)
    assert not head.pace.pauses
    head = then(head, published(1, [1], worker_id="two"), policy=policy)
    assert head.pace.pauses
    head = then(head, published(1, [2], worker_id="two"), policy=policy, now=NOW + 2 * policy.fleet_memory_s)
    assert (len(head.pace.fleet), head.pace.pauses) == (1, True)


def test_the_fleet_of_a_head_counts_at_most_the_first_workers() -> None:
    head = running()
    for number in range(FLEET + 10):
        head = then(head, published(2, [number % 10], worker_id=f"w{number}", executors=1))
    assert head.pace.executors == FLEET
    assert then(head, published(2, [20], worker_id="w0", executors=5)).pace.executors == FLEET + 4


def test_the_costs_of_a_publication_count_with_its_first_result_only() -> None:
    head = running()
    event = replace(published(head.version, [0]), retrieve_us=7, publish_us=9)
    head = then(then(head, event), event)
    assert (head.pace.retrieve_us, head.pace.publish_us) == (7, 9)


def test_no_report_of_a_worker_makes_a_sum_wider_than_a_table_holds() -> None:
    most = 2**63 - 1
    head = running()
    for _ in range(2):
        event = published(head.version, [0, 1, 10, 11], duration_us=most)
        head = then(head, replace(event, retrieve_us=most, publish_us=most, generation=2))
        head = then(head, published(2, [2 + head.tasks.done, 3 + head.tasks.done], duration_us=most))
    assert (
        max(
            head.quota.used_us,
            head.pace.execute_us,
            head.pace.retrieve_us,
            head.pace.publish_us,
            head.progress().mean_us,
        )
        <= MOST_US
    )
