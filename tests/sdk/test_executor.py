"""The behaviour that users of concurrent.futures expect of an executor."""

import asyncio
import concurrent.futures as cf
import gc
import operator
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from cloudpar import Pool
from cloudpar._pool import submit_batcher
from cloudpar.errors import MasterUnreachable, TooLarge
from cloudpar_protocol.client_messages import CancelTasks
from support.fake_master import TOKEN, FakeMaster


class OwnError(Exception):
    def __init__(self, number: int, text: str) -> None:
        super().__init__(number, text)
        self.number = number


def fail(number: int) -> None:
    raise OwnError(number, "on purpose")


def test_submit_returns_a_future_with_the_value(any_pool: Pool) -> None:
    assert any_pool.submit(pow, 2, 8).result() == 256
    assert any_pool.submit(int, "11", base=2).result() == 3


def test_submit_takes_any_keyword(any_pool: Pool) -> None:
    future: cf.Future[Any] = any_pool.submit(lambda **kwargs: kwargs, self=1, fn=2)
    assert future.result() == {"self": 1, "fn": 2}


def test_a_pool_is_an_executor(any_pool: Pool) -> None:
    assert isinstance(any_pool, cf.Executor)
    assert isinstance(any_pool.submit(abs, 1), cf.Future)


def test_every_kind_of_callable_runs(any_pool: Pool) -> None:
    captured = 10
    futures: list[cf.Future[Any]] = [
        any_pool.submit(lambda x: x + captured, 1),
        any_pool.submit(abs, -3),
        any_pool.submit("a,b".split, ","),
        any_pool.submit(operator.itemgetter(1), "xy"),
        any_pool.submit(OwnError, 3, "x"),
    ]
    values = [future.result() for future in futures]
    assert values[:4] == [11, 3, ["a", "b"], "y"]
    assert isinstance(values[4], OwnError)


def test_a_tasks_exception_is_raised_with_its_remote_traceback(any_pool: Pool) -> None:
    future = any_pool.submit(fail, 7)
    with pytest.raises(OwnError) as caught:
        future.result()
    assert caught.value.number == 7
    assert "in fail" in str(caught.value.__cause__)
    assert "on purpose" in str(caught.value.__cause__)
    assert future.exception() is caught.value
    assert any_pool.submit(abs, 1).exception() is None


def test_map_gives_values_in_task_order(any_pool: Pool) -> None:
    assert list(any_pool.map(pow, range(10), range(10))) == list(map(pow, range(10), range(10)))
    assert list(any_pool.map(pow, [1, 2, 3], [2, 2])) == [1, 4]
    assert list(any_pool.map(abs, [])) == []
    assert list(any_pool.map(abs, (x for x in (-1, 2)), chunksize=1)) == [1, 2]


def test_map_is_an_iterator(any_pool: Pool) -> None:
    results = any_pool.map(abs, [-1, -2])
    assert iter(results) is results
    assert next(results) == 1
    assert next(results) == 2
    with pytest.raises(StopIteration):
        next(results)


def test_map_raises_where_the_value_would_be_and_goes_on(any_pool: Pool) -> None:
    results = any_pool.map(divmod, [5, 5, 5], [2, 0, 3])
    assert next(results) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert next(results) == (1, 2)


@pytest.mark.parametrize("chunksize", [0, -1])
def test_map_refuses_a_chunksize(any_pool: Pool, chunksize: int) -> None:
    with pytest.raises(ValueError, match="chunksize must be >= 1"):
        any_pool.map(abs, [1], chunksize=chunksize)


@pytest.mark.parametrize(
    ("buffersize", "error"), [(0, ValueError), (-1, ValueError), ("1", TypeError), (1.0, TypeError)]
)
def test_map_refuses_a_buffersize(any_pool: Pool, buffersize: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="buffersize must be"):
        any_pool.map(abs, [1], buffersize=buffersize)


@pytest.mark.parametrize("buffersize", [1, 2, 4, 5, 100])
def test_map_with_buffersize_gives_all_values_in_order(any_pool: Pool, buffersize: int) -> None:
    assert list(any_pool.map(str, range(9), buffersize=buffersize)) == [str(x) for x in range(9)]
    assert list(any_pool.map(pow, range(4), iter(range(4)), buffersize=buffersize)) == [1, 1, 4, 27]
    assert list(any_pool.map(str, [], buffersize=buffersize)) == []


def test_a_buffer_takes_an_endless_iterable(any_pool: Pool) -> None:
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = any_pool.map(str, endless(), buffersize=8)
    assert taken == 8
    for read in range(1, 21):
        assert next(results) == str(read)
        assert taken <= 8 + read
    results.close()


def test_callbacks_of_futures_are_called(any_pool: Pool) -> None:
    called: list[Any] = []
    done = threading.Event()

    def call(future: cf.Future[int]) -> None:
        called.append(future.result())
        done.set()

    any_pool.submit(abs, -4).add_done_callback(call)
    assert done.wait(60)
    assert called == [4]


def test_a_callback_may_submit(any_pool: Pool) -> None:
    second: cf.Future[int] = cf.Future()
    any_pool.submit(abs, -4).add_done_callback(
        lambda first: any_pool.submit(abs, -first.result()).add_done_callback(lambda it: second.set_result(it.result()))
    )
    assert second.result(60) == 4


def test_wait_and_as_completed_take_futures_of_a_pool(any_pool: Pool) -> None:
    futures = [any_pool.submit(abs, number) for number in range(20)]
    assert sorted(future.result() for future in cf.as_completed(futures)) == list(range(20))
    done, pending = cf.wait(futures)
    assert (len(done), len(pending)) == (20, 0)
    failed = any_pool.submit(fail, 1)
    failures, _ = cf.wait([failed], return_when=cf.FIRST_EXCEPTION)
    assert failed in failures


def test_futures_can_be_awaited_by_asyncio(any_pool: Pool) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        wrapped = asyncio.wrap_future(any_pool.submit(abs, -1))
        return list(await asyncio.gather(wrapped, loop.run_in_executor(any_pool, abs, -2)))

    assert asyncio.run(main()) == [1, 2]


def test_several_threads_share_a_pool(any_pool: Pool) -> None:
    sums: list[int] = []

    def use(base: int) -> None:
        futures = [any_pool.submit(abs, base + number) for number in range(20)]
        sums.append(sum(future.result() for future in futures) + sum(any_pool.map(abs, range(base, base + 20))))

    threads = [threading.Thread(target=use, args=(100 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sums) == [2 * sum(range(base, base + 20)) for base in (0, 100, 200, 300)]


def test_many_submits_travel_in_few_packages(pool: Pool, master: FakeMaster) -> None:
    futures = [pool.submit(operator.add, number, 1) for number in range(500)]
    assert [future.result() for future in futures] == list(range(1, 501))
    assert len(master.packages) < 100


def test_a_too_large_task_does_not_fail_the_others_of_its_batch(
    pool: Pool, master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloudpar._serialization.packer.BLOB_BYTES", 10_000)
    master.faults["start_tasks"] = deque([503])  # so that the others wait for the first
    futures = [pool.submit(len, bytes(size)) for size in (1, 6000, 20_000, 6000)]
    with pytest.raises(TooLarge, match=r"task 0 alone .*: send a reference") as caught:
        futures.pop(2).result()
    assert "buffersize=" not in str(caught.value)
    assert [future.result() for future in futures] == [1, 6000, 6000]


def test_tasks_of_different_functions_share_a_package(pool: Pool, master: FakeMaster) -> None:
    master.faults["start_tasks"] = deque([503])  # so that some wait for the first
    functions: list[Any] = [abs, str, float, lambda x: [x]]
    futures: list[cf.Future[Any]] = [pool.submit(functions[number % 4], number) for number in range(40)]
    assert [future.result() for future in futures[:5]] == [0, "1", 2.0, [3], 4]
    assert len(master.packages) < 20
    assert "several functions" in {stored.message.name for stored in master.packages.values()}


def test_starmap_unpacks_each_value(any_pool: Pool) -> None:
    assert list(any_pool.starmap(pow, [(2, 5), (3, 2)])) == [32, 9]
    assert list(any_pool.starmap(pow, ((x, 2) for x in range(5)), buffersize=2)) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("buffersize", [None, 3])
def test_map_unordered_gives_every_value(any_pool: Pool, buffersize: int | None) -> None:
    results = any_pool.map_unordered(divmod, range(10), [3] * 10, buffersize=buffersize)
    assert sorted(results) == sorted(map(divmod, range(10), [3] * 10))


def test_map_unordered_gives_the_first_result_that_arrives(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    results = pool.map_unordered(str, range(3))
    assert results.package_id is not None
    for index in (2, 0, 1):
        master.run(results.package_id, range(index, index + 1))
        assert next(results) == str(index)


def test_a_pool_that_is_shut_down_refuses_new_tasks(master: FakeMaster) -> None:
    pool = Pool(master.endpoint, TOKEN)
    pool.shutdown()
    pool.shutdown()
    for call in (lambda: pool.submit(abs, 1), lambda: pool.map(abs, [1]), lambda: pool.parallel_for(0, 1, print)):
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            call()


def test_shutdown_waits_for_unfinished_tasks(master: FakeMaster) -> None:
    with Pool(master.endpoint, TOKEN) as pool:
        futures = [pool.submit(abs, number) for number in range(10)]
        results = pool.map(abs, range(5))
    assert all(future.done() for future in futures)
    assert list(results) == list(range(5))


def test_shutdown_without_waiting_returns_before_the_tasks_end(master: FakeMaster) -> None:
    master.automatic = False
    pool = Pool(master.endpoint, TOKEN)
    future = pool.submit(abs, -1)
    master.wait_for(lambda: master.packages)
    pool.shutdown(wait=False)
    assert not future.done()
    master.run("p0")
    assert future.result(60) == 1
    master.wait_for(lambda: master.acknowledged)
    pool.shutdown(wait=True)


def test_shutdown_can_cancel_queued_tasks(master: FakeMaster) -> None:
    master.automatic = False
    pool = Pool(master.endpoint, TOKEN)
    futures = [pool.submit(abs, number) for number in range(10)]
    pool.shutdown(wait=True, cancel_futures=True)
    assert all(future.cancelled() for future in futures)
    assert all(message.only_queued for message in master.received(CancelTasks))


def test_a_dropped_pool_finishes_its_work(master: FakeMaster) -> None:
    pool = Pool(master.endpoint, TOKEN)
    reference = weakref.ref(pool)
    future = pool.submit(abs, -1)
    del pool
    gc.collect()
    assert reference() is None
    assert future.result(60) == 1
    master.wait_for(lambda: master.acknowledged)


def test_an_iterator_keeps_no_reference_to_read_results(any_pool: Pool) -> None:
    """Holding the iterator must not keep its earlier results in memory."""
    for value in any_pool.map(lambda _: OwnError(1, ""), range(3)):
        reference = weakref.ref(value)
        del value
        gc.collect()
        assert reference() is None


class AsyncCallable:
    async def __call__(self, value: int) -> int:
        return value


async def coroutine(value: int) -> int:
    return value


@pytest.mark.parametrize("function", [None, 5])
def test_an_object_that_is_not_callable_is_refused_at_the_call(pool: Pool, master: FakeMaster, function: Any) -> None:
    for call in calls_of(pool, function):
        with pytest.raises(TypeError, match=f"^{function} is no function: give a callable"):
            call()
    assert not master.packages


@pytest.mark.parametrize("function", [coroutine, AsyncCallable(), partial(coroutine, 1)])
def test_async_functions_are_refused_at_the_call(pool: Pool, master: FakeMaster, function: Any) -> None:
    for call in calls_of(pool, function):
        with pytest.raises(TypeError, match=r"^async functions are not supported: .* asyncio\.run"):
            call()
    assert not master.packages


def calls_of(pool: Pool, function: Any) -> list[Callable[[], object]]:
    return [
        lambda: pool.submit(function, 1),
        lambda: pool.map(function, [1]),
        lambda: pool.map_unordered(function, []),
        lambda: pool.starmap(function, [(1,)], buffersize=2),
        lambda: pool.parallel_for(0, 1, function),
        lambda: pool.parallel_for(0, 0, function),
    ]


@pytest.mark.parametrize("error", [MemoryError("none left"), RuntimeError("no thread"), ValueError("anything")])
def test_a_batch_that_cannot_be_started_fails_alone(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(submit_batcher, "order_for", Mock(side_effect=error))
        assert pool.submit(abs, -1).exception(60) is error
    assert pool.submit(abs, -2).result(60) == 2


def test_a_batch_that_fails_after_its_start_is_given_up(
    pool: Pool, master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    master.automatic = False
    awaiter = pool._client.session._awaiter
    with monkeypatch.context() as patch:
        patch.setattr(awaiter, "start_done", Mock(side_effect=RuntimeError("can't start new thread")))
        with pytest.raises(RuntimeError, match="can't start new thread"):
            pool.submit(abs, -1).result(60)
    master.wait_for(lambda: master.acknowledged == {"p0"})


def test_a_thread_that_does_not_start_is_tried_again(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        with pytest.raises(RuntimeError, match="can't start new thread"):
            pool.submit(abs, -1)
    assert pool.submit(abs, -2).result(60) == 2


def test_a_pool_ends_even_if_the_master_does_not_cancel(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise MasterUnreachable("no answer")

    before = set(threading.enumerate())
    pool = Pool(master.endpoint, TOKEN)
    assert pool.submit(abs, -1).result() == 1
    monkeypatch.setattr(pool._client, "cancel_queued", away)
    with pytest.raises(MasterUnreachable):
        pool.shutdown(cancel_futures=True)
    for thread in set(threading.enumerate()) - before:  # its requests would go on otherwise
        if "cloudpar" in thread.name:
            thread.join(30)
            assert not thread.is_alive()
