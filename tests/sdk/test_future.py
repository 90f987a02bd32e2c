"""Cancelling futures, and futures whose package fails."""

import asyncio
import concurrent.futures as cf
import threading
from collections import deque

import pytest

from cloudpar import Pool
from cloudpar.errors import (
    ExecutorCrashed,
    ExecutorOutOfMemory,
    NotFound,
    QuotaExhausted,
    SerializationError,
    TaskError,
    TaskLost,
    TaskQuotaExceeded,
    TaskTimeout,
)
from cloudpar.future import TaskFuture
from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import TaskResult
from support.fake_master import TOKEN, FakeMaster


@pytest.fixture
def running(pool: Pool, master: FakeMaster) -> cf.Future[int]:
    """A task that the master has and never finishes."""
    master.automatic = False
    future = pool.submit(abs, -1)
    master.wait_for(lambda: master.packages)
    return future


def test_cancel_stops_a_task_that_is_at_the_master(running: cf.Future[int]) -> None:
    called = threading.Event()
    running.add_done_callback(lambda _: called.set())
    assert running.cancel()
    assert running.cancelled()
    assert running.done()
    assert called.wait(60)
    with pytest.raises(cf.CancelledError):
        running.result()
    assert running.cancel(), "again"
    assert cf.wait([running]).done == {running}
    assert list(cf.as_completed([running])) == [running]


def test_cancel_is_false_when_the_value_came_first(running: cf.Future[int], master: FakeMaster) -> None:
    master.run("p0")
    assert running.result(60) == 1
    assert not running.cancel()
    assert not running.cancelled()


def test_cancel_is_false_when_the_master_has_the_value(running: cf.Future[int], master: FakeMaster) -> None:
    with master.condition:
        master.packages["p0"].finished.add(0)  # its page is still on the way
    assert not running.cancel()
    assert not running.done()
    with master.condition:
        master.packages["p0"].finished.clear()
    master.run("p0")
    assert running.result(60) == 1


def test_cancel_is_false_when_the_master_refuses(running: cf.Future[int], master: FakeMaster) -> None:
    master.packages["p9"] = master.packages.pop("p0")
    with master.condition:
        master.condition.notify_all()
    with pytest.raises(NotFound, match="p0 does not exist"):
        running.result(60)
    assert not running.cancel()


def test_cancel_before_the_start_never_reaches_the_master(pool: Pool, master: FakeMaster) -> None:
    master.faults["start_tasks"] = deque([503] * 3)
    first = pool.submit(abs, -1)
    master.wait_for(lambda: master.seen["start_tasks"])
    second = pool.submit(abs, -2)
    assert second.cancel()
    assert first.result(60) == 1
    assert cf.wait([second]).done == {second}
    pool.shutdown()
    assert len(master.packages) == 1


def test_ctrl_c_also_cancels_tasks_that_are_in_no_package_yet(
    pool: Pool, master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    master.automatic = False
    master.faults["start_tasks"] = deque([503] * 3)
    first = pool.submit(abs, -1)
    master.wait_for(lambda: master.seen["start_tasks"])
    second = pool.submit(abs, -2)
    with monkeypatch.context() as patched:
        patched.setattr(cf.Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            second.result()
    assert second.cancelled()
    assert cf.wait([first], 60).done == {first}
    assert first.cancelled()
    assert [stored.message.n for stored in master.packages.values()] == [1]


def test_cancelling_a_task_does_not_stop_others_of_its_batch(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    master.faults["start_tasks"] = deque([503])
    futures = [pool.submit(abs, -number) for number in range(10)]
    master.wait_for(lambda: sum(stored.message.n for stored in master.packages.values()) == 10)
    assert futures[3].cancel()
    for package_id in list(master.packages):
        master.run(package_id)
    assert [future.result() for future in futures if not future.cancelled()] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_an_awaiting_coroutine_that_is_cancelled_cancels_the_task(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    future = pool.submit(abs, -1)
    master.wait_for(lambda: master.packages)

    async def main() -> None:
        wrapped = asyncio.ensure_future(asyncio.wrap_future(future))
        await asyncio.sleep(0)
        wrapped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wrapped

    asyncio.run(main())
    assert future.cancelled()


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ("timeout", TaskTimeout), ("quota", TaskQuotaExceeded), ("crashed", ExecutorCrashed),
        ("memory", ExecutorOutOfMemory), ("lost", TaskLost), ("unpicklable", SerializationError),
    ],
)  # fmt: skip
def test_each_outcome_without_a_value_has_its_exception(
    running: cf.Future[int], master: FakeMaster, outcome: Outcome, kind: type[Exception]
) -> None:
    master.publish("p0", [TaskResult(0, outcome, 5, message="this is why", traceback="Traceback: there\n")])
    with pytest.raises(kind, match="this is why") as caught:
        running.result(60)
    assert str(caught.value.__cause__) == "\nTraceback: there"


def test_a_task_that_another_pool_cancelled_is_a_cancelled_future(running: cf.Future[int], master: FakeMaster) -> None:
    master.publish("p0", [TaskResult(0, "cancelled", 5)])
    with pytest.raises(cf.CancelledError):
        running.result(60)


@pytest.mark.parametrize("data", [None, b"no pickle", b"\x80\x05cno_such_module\nX\n."])
def test_an_exception_that_cannot_be_rebuilt_is_a_task_error(
    running: cf.Future[int], master: FakeMaster, data: bytes | None
) -> None:
    master.publish("p0", [TaskResult(0, "error", 5, data=data, message="OwnError: on purpose", traceback="there")])
    with pytest.raises(TaskError, match="OwnError: on purpose") as caught:
        running.result(60)
    assert "there" in str(caught.value.__cause__)


def test_a_value_that_cannot_be_rebuilt_is_a_task_error(running: cf.Future[int], master: FakeMaster) -> None:
    master.publish("p0", [TaskResult(0, "ok", 5, data=b"\x80\x05cno_such_module\nX\n.")])
    with pytest.raises(TaskError, match=r"no_such_module.*install it on this side too"):
        running.result(60)


def test_a_refused_start_fails_its_futures(pool: Pool, master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise QuotaExhausted("no compute time left: ask the operator for more")

    monkeypatch.setattr(master, "start", refuse)
    monkeypatch.setattr(master, "answer", refuse)
    with pytest.raises(QuotaExhausted, match="ask the operator"):
        pool.submit(abs, 1).result(60)
    with pytest.raises(QuotaExhausted, match="ask the operator"):
        pool.map(abs, [1])


def test_results_may_be_waited_for_with_a_timeout(running: cf.Future[int]) -> None:
    with pytest.raises(TimeoutError):
        running.result(timeout=0)
    with pytest.raises(TimeoutError):
        running.exception(timeout=0)
    assert running.cancel()


def test_a_running_future_without_a_pool_cannot_be_cancelled() -> None:
    future: TaskFuture[int] = TaskFuture()
    assert future.set_running_or_notify_cancel()
    assert not future.cancel()
    future.set_result(1)
    assert not future.set_cancelled()
    assert future.result() == 1


def test_a_future_names_its_package_and_its_place_in_it(pool: Pool, master: FakeMaster) -> None:
    futures = [pool.submit(abs, -number) for number in range(20)]
    for number, future in enumerate(futures):
        assert future.package_id in master.packages
        assert future.task_index is not None
        assert pool.submit(abs, -1).package_id is not None
        assert future.result() == number
    places = [(future.package_id, future.task_index) for future in futures]
    assert len(set(places)) == 20


def test_a_task_of_submit_is_read_by_another_pool(master: FakeMaster) -> None:
    master.automatic = False
    pool = Pool(master.endpoint, TOKEN)
    future = pool.submit(abs, -5)
    package_id, index = future.package_id, future.task_index
    assert pool.detach() == [package_id]
    assert package_id is not None
    assert index is not None
    master.run(package_id)
    with Pool(master.endpoint, TOKEN) as later:
        assert later.attach(package_id).results()[index] == 5


def test_a_future_that_never_reached_the_master_has_no_package(pool: Pool, master: FakeMaster) -> None:
    master.faults["start_tasks"] = deque([503] * 3)
    first, second = pool.submit(abs, -1), TaskFuture[int]()
    assert second.cancel()
    assert (second.package_id, second.task_index) == (None, None)
    assert first.result() == 1
