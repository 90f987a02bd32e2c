"""Reading, dropping, cancelling and detaching maps."""

import gc
import threading
import tracemalloc
from collections.abc import Callable

import pytest

from cloudpar import Attachment, MapResults, Pool
from cloudpar.errors import NotFound, PackageFailed, TaskCancelled, TooLarge
from cloudpar_protocol.limits import INLINE_CODE_BYTES
from cloudpar_protocol.payloads import InlineData, RangeData
from support.fake_master import TOKEN, FakeMaster


@pytest.fixture
def waiting(pool: Pool, master: FakeMaster) -> MapResults[int]:
    """A map of three unfinished tasks."""
    master.automatic = False
    return pool.map(abs, [-1, -2, -3])


def acknowledged(master: FakeMaster, package_id: str | None) -> None:
    master.wait_for(lambda: package_id in master.acknowledged)


def test_options_of_a_map_travel_with_its_package(pool: Pool, master: FakeMaster) -> None:
    list(pool.map(abs, range(3, 9, 2), chunksize=2, task_timeout_s=5.0))
    message = next(stored.message for stored in master.packages.values())
    assert (message.n, message.data, message.call) == (3, RangeData(3, 2), "value")
    assert (message.chunksize, message.task_timeout_s, message.name) == (2, 5.0, "abs")
    list(pool.map(pow, [1], [2]))
    message = master.packages["p1"].message
    assert isinstance(message.data, InlineData)
    assert (message.call, message.chunksize, message.task_timeout_s) == ("args", None, None)


def test_a_pools_time_limit_applies_to_its_maps(master: FakeMaster) -> None:
    with Pool(master.endpoint, TOKEN, task_timeout_s=7.0) as pool:
        list(pool.map(abs, [1]))
        pool.submit(abs, 1).result()
        list(pool.map(abs, [1], task_timeout_s=3.0))
    assert [stored.message.task_timeout_s for stored in master.packages.values()] == [7.0, 7.0, 3.0]


def test_results_are_read_while_tasks_run(waiting: MapResults[int], master: FakeMaster) -> None:
    master.run("p0", range(1, 2))
    master.run("p0", range(1))
    assert (next(waiting), next(waiting)) == (1, 2)
    master.run("p0", range(2, 3))
    assert next(waiting) == 3
    acknowledged(master, "p0")


def test_the_length_of_a_map_is_the_number_of_its_tasks(any_pool: Pool) -> None:
    results = any_pool.map(abs, iter([-1, -2]))
    assert (len(results), next(results), len(results)) == (2, 1, 2)
    assert len(any_pool.map_unordered(abs, [])) == 0
    assert any_pool.map(abs, [])


def test_the_length_of_a_map_with_a_buffer_is_unknown_until_its_values_are_read(any_pool: Pool) -> None:
    results = any_pool.map(abs, iter([-1, -2, -3]), buffersize=2)
    with pytest.raises(TypeError, match=r"has no len\(\) until"):
        len(results)
    assert list(results) == [1, 2, 3]
    assert len(results) == 3


def test_the_results_of_a_map_with_a_buffer_are_values_of_another_map(any_pool: Pool) -> None:
    assert list(any_pool.map(float, any_pool.map(abs, [-1, -2, -3], buffersize=2))) == [1.0, 2.0, 3.0]


def test_a_map_that_is_dropped_half_read_is_cancelled(waiting: MapResults[int], master: FakeMaster) -> None:
    master.run("p0", range(1))
    assert next(waiting) == 1
    waiting.close()
    acknowledged(master, "p0")


def test_a_map_in_a_reference_cycle_is_cancelled_by_the_garbage_collector(pool: Pool, master: FakeMaster) -> None:
    master.page_tasks = 1
    for value in pool.map(abs, [-1, -2, -3]):
        assert value == 1
        break
    gc.collect()
    acknowledged(master, "p0")


def test_a_map_that_is_never_read_runs_to_its_end(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    pool.map(abs, [-1, -2])
    gc.collect()
    assert not master.acknowledged
    master.run("p0")
    acknowledged(master, "p0")


def test_a_pool_does_not_wait_for_a_map_after_its_error(master: FakeMaster) -> None:
    master.automatic = False
    with pytest.raises(ZeroDivisionError), Pool(master.endpoint, TOKEN) as pool:  # noqa: PT012 - the block's end is what raises, or is tested
        results = pool.map(lambda x: 1 // x, [0, 1, 2])
        master.run("p0", range(1))
        for _ in results:
            pass
    assert "p0" in master.acknowledged


def test_a_map_whose_package_was_deleted_raises_not_found(waiting: MapResults[int], master: FakeMaster) -> None:
    with master.condition:
        master.acknowledged.add("p0")
        master.condition.notify_all()
    with pytest.raises(NotFound, match="p0 does not exist"):
        next(waiting)


def test_large_data_and_large_results_travel_as_blobs(pool: Pool, master: FakeMaster) -> None:
    values = [bytes([number]) * (number * 40_000) for number in range(10)]
    assert list(pool.map(lambda value: value, values)) == values
    assert (master.seen["put"], master.seen["start_tasks"]) == (1, 1)
    assert master.seen["get"] <= 2


def test_large_code_is_uploaded_once(pool: Pool, master: FakeMaster) -> None:
    ballast = bytes(INLINE_CODE_BYTES)

    def function(x: int) -> int:
        return x + len(ballast)

    for _ in range(3):
        assert list(pool.map(function, [1])) == [1 + INLINE_CODE_BYTES]
    assert master.seen["put"] == 1


def test_results_on_several_pages_are_all_read(pool: Pool, master: FakeMaster) -> None:
    master.page_tasks = 7
    assert list(pool.map(abs, range(100))) == list(range(100))


def test_results_arrive_from_a_master_that_never_holds(pool: Pool, master: FakeMaster) -> None:
    master.hold, master.retry_after_s = False, 0.01
    assert list(pool.map(abs, range(100))) == list(range(100))
    assert pool.submit(abs, -1).result() == 1


def test_more_packages_than_fit_one_request_are_all_read(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    maps = [pool.map(abs, [-number]) for number in range(150)]
    for package_id in list(master.packages):
        master.run(package_id)
    assert [next(results) for results in maps] == list(range(150))


def test_a_package_that_starts_during_a_held_await_is_read_at_once(pool: Pool, master: FakeMaster) -> None:
    """The await that is held for the first package must not delay the news of the second."""
    master.automatic = False
    first = pool.map(abs, [-1])
    master.wait_for(lambda: master.seen["await_tasks"])
    second = pool.map(abs, [-2])
    master.run("p1")
    assert next(second) == 2
    master.run("p0")
    assert next(first) == 1


def test_maps_of_many_threads_get_all_their_results(pool: Pool, master: FakeMaster) -> None:
    """No order of starts, answers and held awaits may lose a package."""
    failures: list[object] = []

    def use(number: int) -> None:
        failures.extend((number, turn) for turn in range(15) if list(pool.map(abs, [-number, -turn])) != [number, turn])

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_detached_map_is_read_by_other_pools_until_it_is_acknowledged(master: FakeMaster) -> None:
    master.automatic = False
    with Pool(master.endpoint, TOKEN) as pool:
        package_id = pool.map(abs, [-1, -2, -3]).detach()
    master.run(package_id)
    for _ in range(2):
        assert not master.acknowledged
        with Pool(master.endpoint, TOKEN) as other:
            attached = other.attach(package_id)
            assert list(attached) == attached.results() == [1, 2, 3]
    with Pool(master.endpoint, TOKEN) as last:
        last.attach(package_id).acknowledge()
    assert master.acknowledged == {package_id}


def test_a_detached_map_cannot_be_read(waiting: MapResults[int]) -> None:
    waiting.detach()
    assert list(waiting) == []


def test_a_detached_pool_lets_all_its_packages_run_on(master: FakeMaster) -> None:
    master.automatic = False
    pool = Pool(master.endpoint, TOKEN)
    results, future = pool.map(abs, [-1]), pool.submit(abs, -2)
    package_ids = pool.detach()
    assert len(package_ids) == 2
    assert results.package_id in package_ids
    assert not future.done()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(abs, 1)
    assert not master.acknowledged


@pytest.mark.parametrize("buffersize", [None, 1])
def test_a_map_without_tasks_or_with_buffersize_cannot_be_detached(pool: Pool, buffersize: int | None) -> None:
    results = pool.map(abs, [] if buffersize is None else [1, 2, 3], buffersize=buffersize)
    with pytest.raises(ValueError, match="only a map whose tasks are all in one package"):
        results.detach()


def test_values_that_were_not_sent_before_the_shutdown_raise(master: FakeMaster) -> None:
    with Pool(master.endpoint, TOKEN) as pool:
        results = pool.map(abs, range(100), buffersize=4)
        assert next(results) == 0
    with pytest.raises(RuntimeError, match=r"before all values .* were sent \(buffersize=4\): read its results"):
        list(results)


@pytest.mark.parametrize("attach", [False, True])
def test_without_a_thread_no_package_is_started(
    pool: Pool, master: FakeMaster, monkeypatch: pytest.MonkeyPatch, attach: bool
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("threading.Thread.start", no_thread)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            pool.attach("0" * 32) if attach else pool.map(abs, [-1])
    assert not master.packages
    assert pool.submit(abs, -1).result() == 1


def test_a_map_is_read_to_its_end_without_a_thread_for_acknowledgements(
    master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pool(master.endpoint, TOKEN) as pool:
        results = pool.map(abs, [-1, -2])
        with monkeypatch.context() as patch:
            patch.setattr("threading.Thread.start", no_thread)
            assert list(results) == [1, 2]
    assert master.acknowledged == {"p0"}


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_an_attachment_waits_and_can_cancel(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    attached = pool.attach(pool.map(abs, [-1]).detach())
    with pytest.raises(TimeoutError):
        attached.results(timeout=0)
    attached.cancel()
    with pytest.raises((TaskCancelled, PackageFailed)):
        attached.results()


def test_data_over_the_limit_is_refused(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudpar._serialization.packer.BLOB_BYTES", 10_000)
    with pytest.raises(TooLarge, match="buffersize="):
        pool.map(len, [bytes(6000)] * 3)
    assert list(pool.map(len, [bytes(6000)] * 3, buffersize=1)) == [6000] * 3


def test_one_pool_can_read_a_package_twice(pool: Pool, master: FakeMaster) -> None:
    master.automatic, master.page_tasks = False, 1
    results = pool.map(abs, [-1, -2])
    assert results.package_id is not None
    master.run(results.package_id, range(1))
    assert next(results) == 1
    attached = pool.attach(results.package_id)
    master.run(results.package_id, range(1, 2))
    assert attached.results() == [1, 2]
    assert next(results) == 2


def stop(number: int) -> int:
    if number == 1:
        raise StopIteration
    return number


def attached(pool: Pool) -> Attachment[int]:
    results = pool.map(stop, range(3))
    assert results.package_id is not None
    return pool.attach(results.package_id)


@pytest.mark.parametrize(
    "read",
    [
        lambda pool: list(pool.map(stop, range(3))),
        lambda pool: list(pool.map_unordered(stop, range(3))),
        lambda pool: pool.parallel_for(0, 3, stop),
        lambda pool: list(attached(pool)),
        lambda pool: attached(pool).results(),
    ],
    ids=["map", "map_unordered", "parallel_for", "attachment", "results"],
)
def test_stop_iteration_in_a_task_ends_no_iteration(any_pool: Pool, read: Callable[[Pool], object]) -> None:
    with pytest.raises(RuntimeError, match=r"^task 1 raised StopIteration\b") as caught:
        read(any_pool)
    assert isinstance(caught.value.__cause__, StopIteration)


def memory_of_unread_results(pool: Pool, buffersize: int | None) -> int:
    """The most memory, in MB, that a map of 40 results of 1 MB takes if its reader is slower than its tasks."""
    results = pool.map(lambda _: bytes(1 << 20), range(40), buffersize=buffersize)
    tracemalloc.start()
    try:
        for _ in range(20):
            for handle in results.under_way():
                handle.ended.wait()  # every result that can arrive before the next read has arrived
            next(results)
        return tracemalloc.get_traced_memory()[1] >> 20
    finally:
        tracemalloc.stop()
        results.close()


def test_a_buffer_bounds_the_memory_of_results_that_are_not_read(embedded: Pool) -> None:
    assert memory_of_unread_results(embedded, None) >= 38
    assert memory_of_unread_results(embedded, 5) <= 12
