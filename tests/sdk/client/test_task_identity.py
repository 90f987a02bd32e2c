"""An error says which task it belongs to and the task's arguments, wherever it is raised."""

import asyncio
import concurrent.futures as cf
import copy
import pickle
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cloudpar import Pool
from cloudpar._client.places import Places
from cloudpar.errors import Gone, PackageFailed, QuotaExhausted, SerializationError, TaskTimeout
from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import TaskResult
from support.fake_master import FakeMaster


def fail(x: object) -> None:
    raise ValueError("bad row")


def notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


def failures(results: Iterator[object]) -> Iterator[Any]:
    return (each for each in results if isinstance(each, BaseException))


def test_an_error_of_a_map_has_its_index_its_package_and_its_value(embedded: Pool) -> None:
    rows = [{"id": number, "price": None} for number in range(2000)]
    results = embedded.map(lambda row: 1 / (row["id"] - 1312), rows)
    with pytest.raises(ZeroDivisionError) as caught:
        list(results)
    error: Any = caught.value
    assert (error.task_index, error.package_id) == (1312, results.package_id)
    assert notes(error) == ["task 1,312 of 2,000, value {'id': 1312, 'price': None}"]
    shown = "".join(traceback.format_exception(error))
    assert shown.endswith("task 1,312 of 2,000, value {'id': 1312, 'price': None}\n")


def test_an_iterators_values_are_named_by_the_executor(embedded: Pool) -> None:
    """The client no longer has the values of an iterator."""
    found = list(failures(embedded.map(fail, (str(x) for x in range(3)), return_exceptions=True)))
    assert [notes(error) for error in found] == [[f"task {x} of 3, value '{x}'"] for x in range(3)]
    found = list(failures(embedded.map(divmod, [1, 2], iter([0, 0]), return_exceptions=True)))
    assert [notes(error) for error in found] == [[f"task {x} of 2, arguments ({x + 1}, 0)"] for x in range(2)]


def test_with_buffersize_indexes_count_over_all_packages(embedded: Pool) -> None:
    results = embedded.map(fail, "abcdefg", buffersize=2, return_exceptions=True)
    found = list(failures(results))
    assert [error.task_index for error in found] == [*range(7)]
    assert notes(found[6]) == ["task 6, value 'g'"]
    assert len({error.package_id for error in found}) > 1


def test_errors_of_an_unordered_map_have_index_and_value(embedded: Pool) -> None:
    found = failures(embedded.map_unordered(fail, range(10, 15), return_exceptions=True))
    assert sorted(notes(error)[0] for error in found) == [f"task {x} of 5, value {10 + x}" for x in range(5)]


def test_parallel_for_names_the_index_of_the_loop(embedded: Pool) -> None:
    with pytest.raises(ValueError, match="bad row") as caught:
        embedded.parallel_for(100, 101, fail)
    assert notes(caught.value) == ["task 0 of 1, value 100"]


def test_errors_of_futures_have_the_index_however_they_are_awaited(embedded: Pool) -> None:
    def check(future: Any, error: Any) -> None:
        assert (error.task_index, error.package_id) == (future.task_index, future.package_id)
        assert notes(error) == [f"task {future.task_index}, arguments ('x')"]

    future = embedded.submit(fail, "x")
    with pytest.raises(ValueError, match="bad row") as caught:
        future.result()
    check(future, caught.value)
    check(future, future.exception())
    for each in cf.as_completed([embedded.submit(fail, "x") for _ in range(3)]):
        check(each, each.exception())

    async def main() -> None:
        handle = embedded.submit(fail, "x")
        with pytest.raises(ValueError, match="bad row") as caught:
            await asyncio.wrap_future(handle)
        check(handle, caught.value)

    asyncio.run(main())


def test_errors_name_keyword_arguments(embedded: Pool) -> None:
    error = embedded.submit(int, "z", base=3).exception()
    assert error is not None
    assert notes(error)[0].endswith("arguments ('z', base=3)")


def test_an_attachment_in_another_process_knows_the_values_too(embedded: Pool) -> None:
    results = embedded.map(fail, [5, 6], return_exceptions=True)
    assert results.package_id is not None
    attached = embedded.attach(results.package_id)
    for outcome in attached.outcomes():
        error: Any = outcome.error
        assert (error.task_index, error.package_id) == (outcome.task_index, results.package_id)
        assert notes(error) == [f"task {outcome.task_index} of 2, value {outcome.task_index + 5}"]
    with pytest.raises(ValueError, match="bad row") as caught:
        attached.results()
    assert notes(caught.value) == ["task 0 of 2, value 5"]
    attached.acknowledge()


@pytest.mark.parametrize("outcome", ["timeout", "crashed", "memory", "quota", "lost", "unpicklable"])
def test_a_task_without_an_executors_report_is_named_by_the_clients_values(
    pool: Pool, master: FakeMaster, outcome: Outcome
) -> None:
    master.automatic = False
    results = pool.map(abs, ["a", "b"], return_exceptions=True)
    master.publish("p0", [TaskResult(1, outcome, 5, message="why")])
    master.run("p0")
    error: Any = list(results)[1]
    assert (str(error), error.task_index, error.package_id) == ("why", 1, "p0")
    assert notes(error) == ["task 1 of 2, value 'b'"]


def test_the_error_of_a_time_limit_has_index_and_value(embedded: Pool) -> None:
    spin = "while True: pass"
    (error,) = failures(embedded.map(exec, [spin], task_timeout_s=0.2, return_exceptions=True))
    assert isinstance(error, TaskTimeout)
    assert notes(error) == [f"task 0 of 1, value '{spin}'"]


def test_tasks_of_a_failed_package_have_errors_of_their_own(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    results = pool.map(abs, range(2), return_exceptions=True)
    master.fail("p0", "failed", "quota", "request more")
    first, second = failures(results)
    assert isinstance(first, PackageFailed)
    assert (first.task_index, second.task_index, second.package_id) == (0, 1, "p0")
    assert notes(first) == notes(second) == ["package failed, reason: quota"]


def test_the_error_for_a_deleted_package_names_no_task(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    results = pool.map(abs, range(1000))
    master.fail("p0", "expired", "read", "package p0 was acknowledged")
    for read in (lambda: next(results), pool.attach("p0").results):
        with pytest.raises(Gone, match=r"^package p0 was acknowledged$") as caught:
            read()
        assert notes(caught.value) == []


def test_futures_of_a_failed_package_have_errors_of_their_own(pool: Pool, master: FakeMaster) -> None:
    master.automatic = False
    futures = [pool.submit(abs, -number) for number in range(3)]
    ids = {future.package_id for future in futures}
    for package_id in ids:
        assert package_id is not None
        master.fail(package_id, "failed", "quota", "request more")
    errors = [future.exception() for future in futures]
    assert len(set(map(id, errors))) == 3
    assert {str(error) for error in errors} == {"request more"}
    assert {error.package_id for error in errors if isinstance(error, PackageFailed)} == ids


def test_the_error_for_stop_iteration_has_index_and_value(embedded: Pool) -> None:
    def stop(x: int) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="task 0 raised StopIteration") as caught:
        next(embedded.map(stop, [5]))
    assert notes(caught.value) == ["task 0 of 1, value 5"]


def test_with_buffersize_output_and_refused_values_have_indexes_of_the_map() -> None:
    shown: list[int] = []
    with Pool("local", workers=1, output=lambda index, *_: shown.append(index)) as pool:
        results = pool.map(lambda x: sys.stdout.write("said"), [0, 1, 2, threading.Lock()], buffersize=1)
        assert [next(results) for _ in range(3)] == [4] * 3
        with pytest.raises(SerializationError, match="the data of task 3 "):
            next(results)
    assert shown == [0, 1, 2]


# odd exceptions


class Slotted(Exception):
    __slots__ = ("code",)


class Needy(Exception):
    def __init__(self, *, reason: str) -> None:
        super().__init__(reason)


@dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Taken(Exception):
    """An exception whose class has its own `task_index`."""

    task_index = "mine"


class Closed(Exception):
    @property
    def package_id(self) -> str:
        return "mine"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


@pytest.mark.parametrize(
    "error",
    [Slotted(1), Needy(reason="x"), Frozen(3), ExceptionGroup("g", [ValueError(1)]), SystemExit(3), StopIteration(1)],
    ids=lambda error: type(error).__name__,
)
def test_odd_exceptions_are_identified_and_pickle_as_before(error: Any) -> None:
    Places(tasks=9).identify(error, "p", 3, "value 3")
    assert (error.task_index, error.package_id, notes(error)) == (3, "p", ["task 3 of 9, value 3"])
    if not isinstance(error, Needy | Frozen):
        again = pickle.loads(pickle.dumps(error))
        assert (again.task_index, again.package_id, notes(again)) == (3, "p", ["task 3 of 9, value 3"])
    assert copy.copy(QuotaExhausted("x")).args == ("x",)


def test_attributes_that_an_exceptions_class_defines_are_not_replaced() -> None:
    taken, closed = Taken(), Closed()
    for error in (taken, closed):
        Places().identify(error, "p", 3, None)
        assert notes(error) == ["task 3"]
    assert (taken.task_index, taken.package_id) == ("mine", "p")  # type: ignore[attr-defined]
    assert (closed.package_id, closed.task_index) == ("mine", 3)  # type: ignore[attr-defined]


def test_an_exception_whose_notes_are_no_list_is_identified() -> None:
    error: Any = ValueError()
    error.__notes__ = "odd"
    Places().identify(error, "p", 3, None)
    assert error.task_index == 3


def test_one_exception_object_raised_by_many_tasks_has_one_note_in_each(embedded: Pool) -> None:
    shared = ValueError("shared")

    def fail_shared(x: int) -> None:
        raise shared

    found = list(failures(embedded.map(fail_shared, range(5), return_exceptions=True)))
    assert [notes(error) for error in found] == [[f"task {x} of 5, value {x}"] for x in range(5)]


def test_a_value_of_a_list_that_was_shortened_since_the_call_is_not_named() -> None:
    error = ValueError()
    Places(tasks=3, values=[1]).identify(error, "p", 2, None)
    assert notes(error) == ["task 2 of 3"]
