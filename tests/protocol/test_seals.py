"""Seals compared with the library's HMAC, and with each other."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cloudpar_protocol import seals as module
from cloudpar_protocol.payloads import BlobRef, InlineData, RangeData, TaskCode, TaskData, TaskResult
from cloudpar_protocol.seals import LARGE_BYTES, SEALED, Seals, is_sealed, package_id

KEY = bytes(range(32))
PACKAGE = package_id("account", "key", sealed=True)
CODE = TaskCode("a" * 64, b"code")
RANGED = RangeData(3, -1)
VECTORS = Path(module.__file__).parents[1] / "vectors" / "seals.json"


class SealVector(msgspec.Struct):
    """One seal, also for implementations in other languages."""

    of: str
    key: str
    package_id: str
    seal: str
    index: int = 0
    payload: str = ""
    repeat: int = 1
    outcome: str = "ok"
    account_id: str = ""
    idempotency_key: str = ""
    hash: str = ""
    reference: bool = False
    call: str = ""
    codec: str = ""
    python: str = ""
    tasks: int = 0
    range: tuple[int, int] | None = None


def whole(kind: str, *parts: str, payload: bytes = b"") -> bytes:
    text = "\0".join((kind, PACKAGE, *parts)).encode() + (b"\0" if kind in {"data", "result"} else b"")
    return hmac.digest(KEY, text + payload, "sha256")[:16]


@given(st.binary(max_size=300), st.integers(0, 10**7))
def test_a_seal_is_an_hmac_of_its_payload_and_place(payload: bytes, index: int) -> None:
    seals = Seals(KEY, PACKAGE)
    assert (
        seals.data(index, payload)
        == seals.data(index, memoryview(payload))
        == whole("data", str(index), payload=payload)
    )
    result = TaskResult(index, "ok", 1, payload)
    assert seals.result(result) == whole("result", str(index), "ok", payload=payload)


def test_the_seal_of_a_large_payload_covers_its_digest() -> None:
    seals, largest = Seals(KEY, PACKAGE), bytes(LARGE_BYTES)
    assert seals.data(1, largest) == whole("data", "1", payload=largest)
    digest = hashlib.blake2b(largest + b"x").digest()
    assert seals.data(1, largest + b"x") == whole("data", "large", "1", payload=digest)
    assert seals.data(1, digest) != seals.data(1, largest + b"x")


def code_seal(
    code: TaskCode = CODE, data: TaskData = RANGED, *, key: bytes = KEY, package: str = PACKAGE, **changes: Any
) -> bytes:
    """The seal of task code, called in the usual way but for some changes."""
    how: dict[str, Any] = {"call": "value", "codec": "pickle", "python": "3.11", "tasks": 7}
    return Seals(key, package).code(code, data, **(how | changes))


def test_the_seal_of_task_code_covers_everything_that_decides_what_runs() -> None:
    seal = code_seal()
    assert seal == whole("code", "pickle", "a" * 64, "value", "pickle", "3.11", "7", "range 3 -1")
    others = {
        code_seal(replace(CODE, hash="b" * 64)),
        code_seal(TaskCode("a" * 64, reference="a:b")),
        code_seal(data=RangeData(3, 1)),
        code_seal(data=InlineData([])),
        code_seal(call="args"),
        code_seal(codec="msgpack"),
        code_seal(python="3.12"),
        code_seal(tasks=8),
        code_seal(package=package_id("account", "other", sealed=True)),
        code_seal(key=bytes(32)),
    }
    assert len(others | {seal}) == 11


def test_an_id_says_whether_a_package_is_sealed() -> None:
    plain = package_id("account", "key", sealed=False)
    assert (is_sealed(PACKAGE), is_sealed(plain), len(PACKAGE), len(plain)) == (True, False, 32, 32)
    assert SEALED not in "0123456789abcdef"


@pytest.mark.parametrize(
    "changes",
    [
        {"data": b"other"}, {"data": b""}, {"data": None}, {"index": 4}, {"outcome": "error"}, {"seal": None},
        {"seal": b""}, {"seal": bytes(16)},
    ],
)  # fmt: skip
def test_g20_a_changed_result_is_not_accepted(changes: dict[str, object]) -> None:
    seals = Seals(KEY, PACKAGE)
    (good,) = seals.sealed([TaskResult(3, "ok", 1, b"value")])
    assert seals.is_result(good)
    assert not seals.is_result(replace(good, **changes))
    assert not Seals(KEY, package_id("account", "other", sealed=True)).is_result(good)
    assert not Seals(bytes(32), PACKAGE).is_result(good)


def test_a_result_without_data_needs_no_seal() -> None:
    seals = Seals(KEY, PACKAGE)
    lost = TaskResult(1, "lost", 1, message="why", seal=b"x" * 16)
    assert seals.sealed([lost])[0].seal is None
    assert seals.is_result(lost)


def test_the_seal_of_a_place_is_valid_for_its_result() -> None:
    seals, blob = Seals(KEY, PACKAGE), BlobRef("results/p/l/0", 5, 7)
    result = TaskResult(1, "ok", 1, b"value", blob)
    good = replace(result, seal=seals.place(result, blob))
    assert seals.is_result(good)
    for other in (BlobRef("results/p/l/1", 5, 7), BlobRef("results/p/l/0", 6, 7), BlobRef("results/p/l/0", 5, 8), None):
        assert not seals.is_result(replace(good, blob=other))
    assert not seals.is_result(replace(good, index=2))


def test_items_are_verified_in_their_places() -> None:
    seals, items = Seals(KEY, PACKAGE), [b"a", b"b", b"c"]
    made = b"".join(seals.data(index, item) for index, item in enumerate(items, 5))
    assert seals.are_data(5, items, made)
    assert seals.are_data(6, items[1:], memoryview(made)[16:])
    assert not seals.are_data(4, items, made)
    assert not seals.are_data(5, [b"b", b"a", b"c"], made)
    assert not seals.are_data(5, items, made[16:32] + made[:16] + made[32:])
    assert not seals.are_data(5, items, b"")
    assert not seals.are_data(5, items, made + bytes(16))


def test_seals_equal_the_vectors_for_other_languages() -> None:
    vectors = msgspec.json.decode(VECTORS.read_bytes(), type=list[SealVector])
    assert {vector.of for vector in vectors} == {"code", "data", "result", "place", "package"}
    for vector in vectors:
        assert _seal(vector) == vector.seal


def _seal(vector: SealVector) -> str:
    seals, payload = Seals(bytes.fromhex(vector.key), vector.package_id), bytes.fromhex(vector.payload) * vector.repeat
    result = TaskResult(vector.index, vector.outcome, 1, payload)  # type: ignore[arg-type]
    match vector.of:
        case "data":
            return seals.data(vector.index, payload).hex()
        case "result":
            return seals.result(result).hex()
        case "place":
            return seals.place(result, BlobRef("results/p/l/0", 5, 7)).hex()
        case "package":
            return package_id(vector.account_id, vector.idempotency_key, sealed=True)
        case _:
            code = TaskCode(vector.hash, reference="a:b") if vector.reference else TaskCode(vector.hash, b"")
            data = RangeData(*vector.range) if vector.range else InlineData([])
            how: dict[str, Any] = {"call": vector.call, "codec": vector.codec, "python": vector.python}
            return seals.code(code, data, tasks=vector.tasks, **how).hex()
