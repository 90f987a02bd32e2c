"""Classes and functions that many tasks' data refers to travel once per package."""

import dataclasses
import pickle
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cloudpar import Pool
from cloudpar._pool.submit_batcher import Submission, SubmitBatcher
from cloudpar._serialization import task_code
from cloudpar._serialization.packing import Packed, pack
from cloudpar._serialization.pickling import SHARED_PARTS
from cloudpar._serialization.project.shipment import Shipper
from cloudpar._serialization.task_code import serialize
from cloudpar.effects import capture
from cloudpar.errors import TooLarge
from cloudpar_protocol.payloads import InlineData


def made_at_run_time() -> Any:
    """A class like those that pandas makes for `DataFrame.itertuples`: no module contains it."""
    Row = namedtuple("Row", "number text")  # noqa: PYI024 - as users write them
    Row.__module__ = "some.library"
    return Row


def items(packed: Packed | None) -> list[bytes]:
    assert packed is not None
    assert isinstance(packed.data, InlineData)
    return packed.data.items


def test_a_row_is_small_and_its_class_travels_once() -> None:
    row = made_at_run_time()
    packed = pack(row(number, "text") for number in range(100))
    assert packed is not None
    assert len(packed.needs.parts) == 1
    assert max(map(len, items(packed))) < 150


def test_each_item_is_read_alone_and_all_are_of_one_class() -> None:
    row = made_at_run_time()
    packed = pack([row(number, "text") for number in range(4)])
    assert packed is not None
    function = pickle.loads(Shipper(here=False).ship(serialize(len), packed.needs).data)
    values = [pickle.loads(item) for item in reversed(items(packed))]
    assert function(values[0]) == 2
    assert [value.number for value in values] == [3, 2, 1, 0]
    assert {type(value) for value in values} == {type(values[0])}


def test_the_same_rows_make_the_same_task_code() -> None:
    row, shipper = made_at_run_time(), Shipper(here=False)
    codes = [shipper.ship(serialize(len), packed.needs) for _ in range(2) if (packed := pack([row(1, "")] * 3))]
    assert codes[0] == codes[1]


def test_a_class_for_each_task_does_not_gather_without_bound() -> None:
    packed = pack(made_at_run_time()(number, "") for number in range(SHARED_PARTS + 20))
    assert packed is not None
    assert len(packed.needs.parts) <= SHARED_PARTS


def in_a_script(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Define something in a script, and return it."""
    import __main__

    namespace: dict[str, Any] = {"__name__": "__main__", "dataclasses": dataclasses}
    exec(text, namespace)
    monkeypatch.setattr(__main__, name, namespace[name], raising=False)
    return namespace[name]


def test_a_function_of_a_script_travels_once(monkeypatch: pytest.MonkeyPatch) -> None:
    function = in_a_script("tripled", "def tripled(x):\n    return 3 * x", monkeypatch)
    packed = pack([(function, number) for number in range(50)])
    assert packed is not None
    assert len(packed.needs.parts) == 1
    assert max(map(len, items(packed))) < 150


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def test_every_call_accepts_instances_and_functions_of_a_script(
    any_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = made_at_run_time()
    point = in_a_script("Point", "@dataclasses.dataclass\nclass Point:\n    number: int", monkeypatch)
    tripled = in_a_script("tripled", "def tripled(x):\n    return 3 * x.number", monkeypatch)
    rows = [row(number, "text") for number in range(6)]
    expected = [0, 3, 6, 9, 12, 15]
    assert list(any_pool.map(lambda each: 3 * each.number, iter(rows))) == expected
    assert list(any_pool.map(call, [tripled] * 6, rows)) == expected
    assert list(any_pool.map(tripled, rows, buffersize=2)) == expected
    assert list(any_pool.starmap(call, [(tripled, point(number)) for number in range(6)])) == expected
    assert sorted(any_pool.map_unordered(tripled, map(point, range(6)))) == expected
    assert [future.result() for future in [any_pool.submit(tripled, each) for each in rows]] == expected
    assert type(next(any_pool.map(lambda each: each, rows))) is row


def test_a_function_that_captures_more_than_task_code_may_have_is_refused(
    any_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_code, "BLOB_BYTES", 100_000)
    frame = bytes(200_000)
    with pytest.raises(TooLarge, match=r"<lambda> takes 200,\d+ bytes with all that it captures.*100,000.*path"):
        any_pool.map(lambda x: x + len(frame), range(3))
    with pytest.raises(TooLarge, match="let the task read the large part"):
        any_pool.submit(lambda: len(frame))
    with pytest.raises(TooLarge, match="let the task read the large part"):
        any_pool.parallel_for(0, 2, lambda i: len(frame))
    assert capture(lambda i: len(frame)).code(0) is None


@pytest.fixture
def submitted(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> list[Submission]:
    """What `submit` makes. It is not run: the fake master would run it in this process, and change the class."""
    found: list[Submission] = []
    monkeypatch.setattr(SubmitBatcher, "submit", lambda _, submission: found.append(submission))
    return found


def test_rows_that_are_submitted_one_by_one_share_their_class(pool: Pool, submitted: list[Submission]) -> None:
    row = made_at_run_time()
    for number in range(4):
        pool.submit(len, row(number, "text"))
    first, _, third, fourth = submitted
    assert (len(first.needs.parts), len(third.needs.parts)) == (0, 1)
    assert third.needs.parts == fourth.needs.parts
    assert len(fourth.data) < 150 < len(first.data)


def test_a_class_that_changes_between_two_calls_of_submit_travels_as_it_is(
    any_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = in_a_script("Point", "class Point:\n    size = 0", monkeypatch)
    seen = []
    for size in range(5):
        point.size = size
        seen += [any_pool.submit(lambda kind: kind.size, point).result() for _ in range(3)]
    assert seen == [size for size in range(5) for _ in range(3)]


def test_changes_of_a_script_while_its_iterator_is_collected_are_not_seen(
    any_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with the map's function, all tasks see the state at the first value that refers to it."""
    scaled = in_a_script("scaled", "scale = 1\ndef scaled(x):\n    return scale * x", monkeypatch)
    namespace = scaled.__globals__

    def values(changes: list[int]) -> Iterator[tuple[Callable[[int], int], int]]:
        for scale in changes:
            namespace["scale"] = scale
            yield scaled, 10

    assert list(any_pool.starmap(call, values([1, 2, 3]))) == [10, 10, 10]
    namespace["scale"] = 7
    assert list(any_pool.map(scaled, (x for _, x in values([1, 2, 3])))) == [70, 70, 70]
