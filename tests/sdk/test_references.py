"""Task code by reference: what travels, and what is returned."""

import datetime as dt
import hashlib
import math
import threading
from typing import Any

import pytest
from msgspec import msgpack

from cloudpar import Pool, reference
from cloudpar.errors import SerializationError, TaskRaised
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.payloads import BlobRef, InlineData, RangeData, TaskCode
from support.fake_master import FakeMaster


def test_a_reference_travels_as_its_name_and_its_data_as_messagepack(master: FakeMaster, pool: Pool) -> None:
    master.automatic = False
    pool.map(reference("math:sqrt"), [1, 2.5])
    pool.map(reference("math:sqrt"), range(10, 0, -2))
    pool.starmap(reference("math:dist"), [([0], [3])])
    by_items, by_range, by_args = master.received(StartTasks)
    text = "math:sqrt"
    code = TaskCode(hashlib.sha256(text.encode()).hexdigest(), reference=text)
    assert (by_items.code, by_items.codec, by_items.call, by_items.name) == (code, "msgpack", "value", text)
    assert by_items.data == InlineData([msgpack.encode(1), msgpack.encode(2.5)])
    assert by_range.data == RangeData(10, -2)
    assert (by_args.call, by_args.data) == ("args", InlineData([msgpack.encode([[0], [3]])]))


def test_functions_beside_references_travel_as_pickles(master: FakeMaster, pool: Pool) -> None:
    assert list(pool.map(abs, [-1])) == [1]
    (message,) = master.received(StartTasks)
    assert (message.codec, message.code.reference) == ("pickle", None)


def test_values_come_back_as_messagepack_holds_them(embedded: Pool) -> None:
    day = dt.datetime(2026, 11, 21, 6, 30, tzinfo=dt.UTC)
    values = [None, True, -(2**63), 2**64 - 1, 1.5, "é漢😀", b"\x00\xff", [1, [2]], {"a": {"b": 1}, 2: "two"}, day]
    assert list(embedded.map(reference("copy:copy"), values)) == values
    assert list(embedded.map(reference("copy:copy"), [(1, 2), {3}])) == [[1, 2], [3]]
    assert list(embedded.map_unordered(reference("math:factorial"), range(3, 4))) == [6]
    assert list(embedded.starmap(reference("builtins:pow"), [(2, 5), (3, 2)])) == [32, 9]
    assert list(embedded.map(reference("builtins:pow"), [2, 3], [5, 2])) == [32, 9]


def test_large_values_of_references_travel_by_link(embedded: Pool) -> None:
    values = [bytes([number]) * 300_000 for number in range(3)]
    assert list(embedded.map(reference("copy:copy"), values)) == values


def test_functions_and_references_may_be_submitted_in_a_row(embedded: Pool) -> None:
    futures = [
        embedded.submit(abs, -1),
        embedded.submit(reference("math:factorial"), 5),
        embedded.submit(lambda x: x + 1, 1),
        embedded.submit(reference("json:dumps"), {"b": 1, "a": 2}, sort_keys=True),
        embedded.submit(reference("math:factorial"), 6),
    ]
    assert [future.result(60) for future in futures] == [1, 120, 2, '{"a": 2, "b": 1}', 720]


def test_an_exception_of_a_reference_arrives_as_text(embedded: Pool) -> None:
    results = embedded.map(reference("builtins:int"), ["x", "4"])
    with pytest.raises(TaskRaised, match=r"^ValueError: invalid literal for int\(\) with base 10: 'x'\n") as caught:
        next(results)
    assert caught.value.__notes__ == ["task 0 of 2, value 'x'"]
    assert "ValueError: invalid literal" in str(caught.value.__cause__)
    assert next(results) == 4
    with pytest.raises(TaskRaised, match=r"has no module 'not_installed_anywhere'.*PYTHONPATH"):
        embedded.submit(reference("not_installed_anywhere:f")).result(60)


def test_a_result_that_messagepack_cannot_hold_is_refused(embedded: Pool) -> None:
    with pytest.raises(SerializationError, match=r"of type _thread\.lock, is not what MessagePack holds"):
        embedded.submit(reference("threading:Lock")).result(60)


def test_an_attached_pool_learns_the_codec(embedded: Pool) -> None:
    results = embedded.map(reference("math:sqrt"), [4, 9])
    assert results.package_id is not None
    assert embedded.attach(results.package_id).results(timeout=60) == [2.0, 3.0]
    assert list(results) == [2.0, 3.0]


def test_data_that_messagepack_cannot_hold_is_refused_at_the_call(pool: Pool) -> None:
    ring: list[Any] = []
    ring.append(ring)
    for value, reason in ((threading.Lock(), "_thread.lock"), (2**64, "64 bit"), (ring, "nested too deeply")):
        with pytest.raises(SerializationError, match=f"the data of task 1.* is not what MessagePack holds: .*{reason}"):
            pool.map(reference("copy:copy"), [1, value])
        with pytest.raises(
            SerializationError, match=f"argument 1 of copy:copy.* is not what MessagePack holds: .*{reason}"
        ):
            pool.submit(reference("copy:copy"), value)


def test_a_reference_can_be_called_in_this_process() -> None:
    assert reference("math:sqrt")(9) == 3.0
    assert reference("collections:OrderedDict.fromkeys")("ab") == {"a": None, "b": None}
    assert repr(reference("math:sqrt")) == "reference('math:sqrt')"
    assert {reference("math:sqrt"), reference("math:sqrt")} == {reference("math:sqrt")}
    assert reference("math:sqrt") not in [math.sqrt, "math:sqrt"]


@pytest.mark.parametrize("text", ["", "math", "math.sqrt", "math:", ":sqrt", "math:sqrt()", "math:sqrt\n", "a b:c"])
def test_a_text_that_names_no_function_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module:function"):
        reference(text)


def test_map_refuses_a_text_instead_of_a_function(pool: Pool) -> None:
    with pytest.raises(TypeError, match=r"cloudpar\.reference"):
        pool.map("math:sqrt", [1])  # type: ignore[call-overload]


BLOB = BlobRef("code/another/account", 1)


@pytest.mark.parametrize(
    ("code", "codec", "text"),
    [
        (TaskCode("0" * 64), "pickle", "exactly one of"),
        (TaskCode("0" * 64, inline=b"x", reference="a:b"), "msgpack", "exactly one of"),
        (TaskCode("0" * 64, blob=BLOB, reference="a:b"), "msgpack", "exactly one of"),
        (TaskCode("0" * 64, inline=b"x", blob=BLOB, reference="a:b"), "msgpack", "exactly one of"),
        (TaskCode("0" * 64, reference="a:b"), "pickle", "go together"),
        (TaskCode("0" * 64, inline=b"x"), "msgpack", "go together"),
    ],
)
def test_the_master_takes_references_with_messagepack_only(
    embedded: Pool, code: TaskCode, codec: Any, text: str
) -> None:
    message = StartTasks(
        idempotency_key="contradiction", n=1, code=code, data=RangeData(0, 1), codec=codec, python="3.11"
    )
    with pytest.raises(BadRequest, match=text):
        embedded._client.session.connection.call(routes.START_TASKS, message)
