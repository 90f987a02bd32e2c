"""Results behind a failed task, and results of a package that is still running."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cloudpar import Pool
from cloudpar.errors import NotFound, PackageFailed, QuotaExhausted, SerializationError, TaskCancelled
from cloudpar.map_results import MapResults
from support.fake_master import TOKEN, FakeMaster


def reciprocal(x: int) -> float:
    return 1 / x


def stop(_: int) -> int:
    raise StopIteration(7)


def read_on(results: Iterator[object]) -> list[object]:
    """Read all results, with exceptions in their places, by a loop that continues after each exception."""
    found: list[object] = []
    while True:
        try:
            found.append(next(results))
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001 - every exception is compared
            found.append(type(error))


# maps


def test_a_map_returns_exceptions_in_their_places(any_pool: Pool) -> None:
    results = any_pool.map(reciprocal, [1, 0, 4], return_exceptions=True)
    first, second, third = results
    assert (first, type(second), third) == (1.0, ZeroDivisionError, 0.25)
    assert any_pool.last_report is not None


def test_an_unordered_map_and_a_starmap_return_exceptions(any_pool: Pool) -> None:
    found = list(any_pool.map_unordered(reciprocal, [1, 0, 4], return_exceptions=True))
    assert sorted(map(str, found)) == ["0.25", "1.0", "division by zero"]
    assert [type(each) for each in any_pool.starmap(divmod, [(5, 2), (5, 0)], return_exceptions=True)] == [
        tuple,
        ZeroDivisionError,
    ]


def test_a_returned_stop_iteration_is_itself_and_ends_nothing(any_pool: Pool) -> None:
    found = list(any_pool.map(stop, range(2), return_exceptions=True))
    assert [(type(each), each.value) for each in found if isinstance(each, StopIteration)] == [(StopIteration, 7)] * 2


def test_a_map_with_a_buffer_returns_exceptions(any_pool: Pool) -> None:
    found = list(any_pool.map(reciprocal, [2, 0] * 5, buffersize=3, return_exceptions=True))
    assert [type(each) for each in found] == [float, ZeroDivisionError] * 5


@pytest.mark.parametrize("ordered", [True, False])
def test_each_task_of_a_failed_package_keeps_its_place(pool: Pool, master: FakeMaster, ordered: bool) -> None:
    """The results that have arrived stay readable, although an earlier task has none."""
    master.automatic = False
    call = pool.map if ordered else pool.map_unordered
    results: MapResults[float | BaseException] = call(reciprocal, [1, 2, 4, 5], return_exceptions=True)
    master.run("p0", range(2, 3))
    master.fail("p0", "failed", "quota", "request more")
    found = list(results)
    kinds = [PackageFailed, PackageFailed, float, PackageFailed]
    assert [type(each) for each in found] == (kinds if ordered else [float, *[PackageFailed] * 3])
    assert 0.25 in found
    errors = [each for each in found if isinstance(each, PackageFailed)]
    assert len(set(map(id, errors))) == 3
    assert {str(each) for each in errors} == {"request more"}
    assert list(results) == []


def test_a_cancelled_map_keeps_its_places(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    results = pool.map(reciprocal, [1, 2, 4])
    master.run("p0", range(1, 2))
    assert pool.attach("p0").outcomes(timeout=0)[0].value == 0.5  # so the map has this result, too
    master.wait_for(lambda: master.seen["await_tasks"])
    results.cancel()
    assert read_on(results) == [TaskCancelled, 0.5, TaskCancelled]


def test_the_timeout_of_a_map_is_raised_in_any_case(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    results = pool.map(abs, [-1, -2], timeout=0, return_exceptions=True)
    for _ in range(2):
        with pytest.raises(TimeoutError, match="the timeout of map"):
            next(results)


@pytest.mark.parametrize("place", range(4))
def test_a_value_that_does_not_pickle_is_raised_in_its_place(any_pool: Pool, place: int) -> None:
    """The values before it in the same package run, and so do those behind it."""
    values: list[Any] = [0, 1, 2, 3]
    values[place] = threading.Lock()
    results = any_pool.map(str, values, buffersize=3)
    assert [next(results) for _ in range(place)] == [str(value) for value in values[:place]]
    with pytest.raises(SerializationError, match=f"the data of task {place} .*lock") as caught:
        next(results)
    assert caught.value.task_index == place
    assert list(results) == [str(value) for value in values[place + 1 :]]


@pytest.mark.parametrize("ordered", [True, False])
def test_values_that_do_not_pickle_are_returned_in_their_places(any_pool: Pool, ordered: bool) -> None:
    bad = [0, 3, 4, 7]
    values = [threading.Lock() if number in bad else number for number in range(8)]
    run = any_pool.map if ordered else any_pool.map_unordered
    found = list(run(str, iter(values), buffersize=4, return_exceptions=True))
    errors = [each for each in found if isinstance(each, SerializationError)]
    assert [error.task_index for error in errors] == bad
    assert sorted(each for each in found if isinstance(each, str)) == ["1", "2", "5", "6"]
    if ordered:
        assert [number for number, each in enumerate(found) if each in errors] == bad


def test_large_values_before_one_that_does_not_pickle_are_whole(any_pool: Pool) -> None:
    """A part of the bad value is already written when its pickling fails."""
    values = [bytes(400_000), b"x" * 400_000, [b"y" * 400_000, threading.Lock()], b"last"]
    found = list(any_pool.map(len, values, buffersize=4, return_exceptions=True))
    assert [found[0], found[1], found[3]] == [400_000, 400_000, 4]
    assert isinstance(found[2], SerializationError)


def test_values_before_an_error_of_the_iterable_run(any_pool: Pool) -> None:
    def values() -> Iterator[int]:
        yield from range(5)
        raise LookupError("no more pages")

    results = any_pool.map(str, values(), buffersize=4, return_exceptions=True)
    assert [next(results) for _ in range(5)] == ["0", "1", "2", "3", "4"]
    with pytest.raises(LookupError, match="no more pages"):
        next(results)
    assert list(results) == []


def test_an_iterable_that_raises_the_error_of_bad_values_ends_the_map(any_pool: Pool) -> None:
    """The iterable raises this error, for example, if it reads another map, one of whose results could not be sent."""

    def values() -> Iterator[int]:
        yield 0
        raise SerializationError("a result of another map")

    results = any_pool.map(str, values(), buffersize=4, return_exceptions=True)
    assert next(results) == "0"
    with pytest.raises(SerializationError, match="a result of another map"):
        next(results)


def test_an_exhausted_quota_does_not_hide_what_a_map_with_a_buffer_has_started(
    pool: Pool, master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = pool.map(str, range(100), buffersize=4)
    assert next(results) == "0"

    def refuse(*_: object) -> None:
        raise QuotaExhausted("request more")

    monkeypatch.setattr(pool._client.session, "start", refuse)
    read: list[str] = []
    with pytest.raises(QuotaExhausted, match="request more"):
        read.extend(iter(lambda: next(results), None))
    started = sum(stored.message.n for stored in master.packages.values())
    assert started < 100
    assert results._feed.given == started
    assert list(results) == []


# attachments


def test_an_iterator_over_an_attachment_goes_on_after_an_exception(any_pool: Pool) -> None:
    results = any_pool.map(reciprocal, [1, 2, 0, 4, 5, 0])
    assert results.package_id is not None
    attached = any_pool.attach(results.package_id)
    error = ZeroDivisionError
    assert read_on(iter(attached)) == [1.0, 0.5, error, 0.25, 0.2, error]
    assert read_on(iter(attached)) == [1.0, 0.5, error, 0.25, 0.2, error]
    with pytest.raises(error):
        attached.results()
    attached.acknowledge()


def test_outcomes_give_each_tasks_value_or_error(any_pool: Pool) -> None:
    results = any_pool.map(reciprocal, [1, 0, 4])
    assert results.package_id is not None
    attached = any_pool.attach(results.package_id)
    outcomes = attached.outcomes()
    assert [(each.task_index, each.value, type(each.error)) for each in outcomes] == [
        (0, 1.0, type(None)),
        (1, None, ZeroDivisionError),
        (2, 0.25, type(None)),
    ]
    attached.acknowledge()


def test_outcomes_of_a_running_package_are_what_is_there(pool: Pool, master: FakeMaster) -> None:
    master.automatic, master.page_tasks = False, 1
    package_id = pool.map(reciprocal, [0, 1, 2, 4]).detach()
    master.run(package_id, range(1, 3))
    attached = pool.attach(package_id)
    assert [tuple(each) for each in attached.outcomes(timeout=0)] == [(1, 1.0, None), (2, 0.5, None)]
    master.run(package_id)
    assert [type(each.error) for each in attached.outcomes()] == [ZeroDivisionError, *[type(None)] * 3]
    assert [each.value for each in attached.outcomes(timeout=0)][1:] == [1.0, 0.5, 0.25]


def test_outcomes_of_a_running_package_include_large_results(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    package_id = pool.map(bytes, [100_000, 200_000, 1]).detach()
    master.run(package_id, range(2))
    assert [len(each.value or b"") for each in pool.attach(package_id).outcomes(timeout=0)] == [100_000, 200_000]


def test_outcomes_of_a_failed_package_have_its_failure_for_missing_results(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    package_id = pool.map(reciprocal, [1, 2, 4]).detach()
    master.run(package_id, range(2, 3))
    master.fail(package_id, "failed", "quota", "request more")
    attached = pool.attach(package_id)
    first, second, third = attached.outcomes()
    assert (type(first.error), type(second.error), third.value) == (PackageFailed, PackageFailed, 0.25)
    assert read_on(iter(attached)) == [PackageFailed, PackageFailed, 0.25]
    with pytest.raises(PackageFailed, match="request more"):
        attached.results()


@pytest.mark.parametrize("timeout", [0, None])
def test_outcomes_and_results_of_an_unknown_package_raise_not_found(pool: Pool, timeout: float | None) -> None:
    with pytest.raises(NotFound):
        pool.attach("0" * 32).outcomes(timeout)
    with pytest.raises(NotFound, match=f"{'0' * 32} does not exist"):
        pool.attach("0" * 32).results()
    assert read_on(iter(pool.attach("0" * 32))) == [NotFound]


def test_an_iteration_that_is_dropped_half_read_holds_no_pool(master: FakeMaster) -> None:
    master.automatic = False
    with Pool(master.endpoint, TOKEN) as pool:
        package_id = pool.map(reciprocal, [0, 1, 2]).detach()
        master.run(package_id, range(2))
        values = iter(pool.attach(package_id))
        with pytest.raises(ZeroDivisionError):
            next(values)
        assert next(values) == 1.0
        del values
    assert master.packages[package_id].state == "running"
