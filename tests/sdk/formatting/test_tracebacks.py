"""Tracebacks show the user's program, without frames of this package, and with source lines of notebook cells."""

import linecache
import pickle
import re
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import cloudpar
from cloudpar import Pool, errors
from cloudpar._formatting.tracebacks import with_source
from cloudpar.errors import CloudparError, NotFound, QuotaExhausted, SerializationError
from support.fake_master import TOKEN, FakeMaster

LOCK = threading.Lock()
INSIDES = str(Path(cloudpar.__file__).parent)


def capturing() -> Callable[[object], object]:
    lock = LOCK
    return lambda _: lock


locked = capturing()


CALLS: dict[str, Callable[[Pool], object]] = {
    "submit": lambda pool: pool.submit(locked, 1),
    "map": lambda pool: pool.map(locked, [1]),
    "map_unordered": lambda pool: pool.map_unordered(locked, [1]),
    "starmap": lambda pool: pool.starmap(locked, [(1,)]),
    "parallel_for": lambda pool: pool.parallel_for(0, 1, lambda _: LOCK.locked()),
    "an argument": lambda pool: pool.submit(print, LOCK),
    "a value": lambda pool: pool.map(print, [LOCK]),
    "a value with a buffer": lambda pool: list(pool.map(print, [1, 2, LOCK], buffersize=1)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_traceback_for_an_unpicklable_part_has_a_few_lines(pool: Pool, call: Callable[[Pool], object]) -> None:
    with pytest.raises(SerializationError) as caught:
        call(pool)
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert len(lines) <= 15, lines
    assert "lock" in lines[-1]
    assert "leave it out, or make it inside the task" in lines[-1]
    assert sum(INSIDES in line for line in lines) <= 3
    assert isinstance(caught.value.__context__, TypeError), "the error of pickle stays available"


def test_the_traceback_for_a_refusal_of_the_master_has_a_few_lines(pool: Pool) -> None:
    with pytest.raises(NotFound) as caught:
        pool.attach("q")
    assert len("".join(traceback.format_exception(caught.value)).splitlines()) <= 10


@pytest.fixture
def malformed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile file that is no TOML."""
    path = tmp_path / "profile.toml"
    path.write_text("endpoint")
    monkeypatch.setenv("CLOUDPAR_PROFILE", str(path))


def start_refused(master: FakeMaster) -> Pool:
    master.faults["start_tasks"] = deque([500] * 100)
    return Pool(master.endpoint, TOKEN, patience_s=0.0)


def cancel_refused(master: FakeMaster) -> None:
    master.automatic = False
    master.faults["cancel_tasks"] = deque(["refuse"] * 100)
    with Pool(master.endpoint, TOKEN, patience_s=0.0) as pool:
        results = pool.map(abs, [1])
        try:
            results.cancel()
        finally:
            master.end_all()


def attached_to_a_lost_master(master: FakeMaster) -> None:
    master.automatic = False
    with Pool(master.endpoint, TOKEN, patience_s=0.0) as pool:
        results = pool.map(abs, [1])
        master.faults["await_tasks"] = deque(["refuse"] * 100)
        pool.attach(str(results.package_id)).results()


REFUSALS: dict[str, tuple[Callable[[FakeMaster], object], str]] = {
    "a wrong token": (lambda master: Pool(master.endpoint, "wrong"), "InvalidToken: this token is unknown"),
    "a missing master": (
        lambda _: Pool("http://127.0.0.1:1", "x"),
        "no master answers at http://127.0.0.1:1: .*refused",
    ),
    "a malformed profile": (lambda _: Pool(), "profile.toml cannot be read: "),
    "a master that fails": (lambda master: start_refused(master).submit(abs, 1).result(), "InternalError: later"),
    "a master that left": (cancel_refused, "the connection ended before its answer"),
    "an attachment": (attached_to_a_lost_master, "the connection ended before its answer"),
}


@pytest.mark.usefixtures("malformed")
@pytest.mark.parametrize(("call", "text"), REFUSALS.values(), ids=REFUSALS)
def test_the_traceback_for_a_failed_request_is_short_and_shows_no_library_errors(
    master: FakeMaster, call: Callable[[FakeMaster], object], text: str
) -> None:
    with pytest.raises(CloudparError) as caught:
        call(master)
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert len(lines) <= 20, lines
    assert [line for line in lines if line.startswith("Traceback")] == ["Traceback (most recent call last):"]
    assert re.search(text, lines[-1])


@pytest.mark.parametrize("kind", [getattr(errors, name) for name in errors.__all__])
def test_tracebacks_and_pickles_name_errors_as_users_import_them(kind: type[BaseException]) -> None:
    assert traceback.format_exception_only(kind("why"))[-1].startswith(f"cloudpar.errors.{kind.__name__}:")
    assert pickle.loads(pickle.dumps(kind)) is kind


def test_error_classes_and_errors_travel_to_a_task_and_back(embedded: Pool) -> None:
    def answer(kind: type[CloudparError], error: CloudparError) -> CloudparError:
        assert isinstance(error, kind)
        assert kind is NotFound
        raise QuotaExhausted(f"after {error}")

    with pytest.raises(QuotaExhausted, match="after nothing"):
        embedded.submit(answer, NotFound, NotFound("nothing")).result()


class Unwilling:
    def __reduce__(self) -> NoReturn:
        raise ValueError("not while the market is open")


def test_an_error_of_a_users_own_pickling_keeps_its_frames(pool: Pool) -> None:
    with pytest.raises(SerializationError, match="not while the market is open") as caught:
        pool.map(print, [Unwilling()])
    shown = "".join(traceback.format_exception(caught.value))
    assert "in __reduce__" in shown
    assert "ValueError: not while the market is open" in shown
    assert "_dumps" not in shown


def test_a_pools_error_that_a_users_generator_raises_keeps_its_frames(pool: Pool) -> None:
    def rows() -> Iterator[int]:
        raise QuotaExhausted("of another pool")
        yield 1

    with pytest.raises(CloudparError) as caught:
        pool.map(abs, rows())
    assert "in rows" in "".join(traceback.format_exception(caught.value))


# source lines

CELL = """
def inner(y):
    return 1 / y  # in the cell

def outer(x):
    try:
        return inner(x)
    except ZeroDivisionError as error:
        raise ExceptionGroup("all of them", [error, error]) from None
"""


def cell(name: str) -> Any:
    """A function of a notebook cell that only this process knows, as IPython makes it."""
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CELL, name, "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name", ["<cell 7>", "/tmp/ipykernel_4711/527708001.py"])
def test_a_remote_traceback_shows_the_lines_of_a_cell(embedded: Pool, name: str) -> None:
    error = embedded.submit(cell(name)["inner"], 0).exception()
    assert error is not None
    shown = str(error.__cause__)
    assert f'File "{name}", line 3, in inner\n    return 1 / y  # in the cell\n' in shown


def test_a_remote_traceback_of_a_group_shows_the_lines_of_a_cell(embedded: Pool) -> None:
    error = embedded.submit(cell("<cell 8>")["outer"], 0).exception()
    assert error is not None
    assert str(error.__cause__).count("    |     return 1 / y  # in the cell\n") == 2


def test_source_lines_that_are_there_are_not_added_again() -> None:
    cell("<cell 9>")
    text = (
        "Traceback (most recent call last):\n"
        '  File "<cell 9>", line 3, in inner\n'
        "    return 1 / y  # as the executor knows it\n"
        "           ~~^~~\n"
        '  File "<cell 9>", line 3, in inner\n'
        '  File "<cell 9>", line 999, in inner\n'
        '  File "/nowhere/at/all.py", line 3, in inner\n'
        "ZeroDivisionError: division by zero"
    )
    lines = with_source(text).splitlines()
    assert lines.pop(5) == "    return 1 / y  # in the cell"
    assert "\n".join(lines) == text
