"""The client verifies results before it unpickles them: a forged pickle writes no file here."""

import pickle
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from cloudpar import Pool, reference
from cloudpar.errors import SealBroken
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.payloads import SEAL_BYTES, BlobData, InlineData, TaskResult
from cloudpar_protocol.seals import Seals, is_sealed, package_id
from support.fake_master import TOKEN, FakeMaster
from support.writing import Writing

KEY = bytes(range(32))


@pytest.fixture
def sealing(master: FakeMaster) -> FakeMaster:
    master.seal_key = KEY
    return master


@pytest.fixture
def pool(sealing: FakeMaster) -> Iterator[Pool]:
    with Pool(sealing.endpoint, TOKEN) as pool:
        yield pool
        sealing.end_all()


def test_code_and_data_of_a_started_package_are_sealed(pool: Pool, sealing: FakeMaster) -> None:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
    (message,) = sealing.received(StartTasks)
    name = package_id("a", message.idempotency_key, sealed=True)
    seals = Seals(KEY, name)
    assert name in sealing.packages
    assert isinstance(message.data, InlineData)
    assert seals.are_data(0, message.data.items, message.data.seals)
    code = {"call": message.call, "codec": message.codec, "python": message.python, "tasks": message.n}
    assert message.seal == seals.code(message.code, message.data, **code)  # type: ignore[arg-type]


@pytest.mark.parametrize("memory_bytes", [64 << 20, 100_000])
def test_seals_of_items_in_a_blob_stand_before_the_table(
    pool: Pool, sealing: FakeMaster, memory_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloudpar._serialization.packer.IN_MEMORY_BYTES", memory_bytes)
    values = [bytes([number]) * 100_000 for number in range(4)]
    assert list(pool.map(len, values)) == [100_000] * 4
    (message,) = sealing.received(StartTasks)
    assert isinstance(message.data, BlobData)
    blob = sealing.blobs[message.data.blob.key]
    table = len(blob) - 8 * 5
    offsets = struct.unpack("<5Q", blob[table:])
    items = [blob[start:end] for start, end in pairwise(offsets)]
    assert [pickle.loads(item) for item in items] == values
    seals = Seals(KEY, package_id("a", message.idempotency_key, sealed=True))
    assert seals.are_data(0, items, blob[table - 4 * SEAL_BYTES : table])


def test_submitted_tasks_and_attached_packages_are_sealed_too(pool: Pool, sealing: FakeMaster) -> None:
    futures = [pool.submit(pow, 2, exponent) for exponent in range(5)]
    assert [future.result() for future in futures] == [1, 2, 4, 8, 16]
    results = pool.map(abs, [-3])
    assert results.package_id
    assert is_sealed(results.package_id)
    assert pool.attach(results.package_id).results() == [3]


def tampered(marker: Path) -> dict[str, Callable[[str, TaskResult], TaskResult]]:
    """Changes to a package's results by an attacker who can write to the master's storage and does not have the key."""
    evil = pickle.dumps(Writing(marker))
    mine, before = TaskResult(1, "ok", 1, evil), package_id("a", "before", sealed=True)

    def sealed(package: str, result: TaskResult, key: bytes = KEY) -> TaskResult:
        return Seals(key, package).sealed([result])[0]

    def moved(result: TaskResult, theirs: TaskResult) -> TaskResult:
        return replace(result, data=theirs.data, seal=theirs.seal)

    return {
        "another value": lambda _, result: replace(result, data=evil),
        "no seal": lambda _, result: replace(result, data=evil, seal=None),
        "an error instead": lambda _, result: replace(result, outcome="error", data=evil),
        "no value": lambda _, result: replace(result, data=None),
        "another package's": lambda _, result: moved(result, sealed(before, mine)),
        "another task's": lambda package, result: moved(result, sealed(package, replace(mine, index=0))),
        "a value as an error": lambda package, _: replace(sealed(package, mine), outcome="error"),
        "another account's": lambda package, result: sealed(package, replace(result, data=evil), bytes(32)),
    }


@pytest.mark.parametrize("how", tampered(Path()))
def test_g20_a_changed_result_is_refused_unread(pool: Pool, sealing: FakeMaster, tmp_path: Path, how: str) -> None:
    change = tampered(tmp_path / "marker")[how]
    sealing.tamper = lambda result: change(list(sealing.packages)[-1], result) if result.index == 1 else result
    results = pool.map(abs, [-1, -2, -3])
    assert next(results) == 1
    with pytest.raises(SealBroken, match=r"task 1 .*seal.*not unpickled.*new secret"):
        next(results)
    assert next(results) == 3
    assert results.package_id
    with pytest.raises(SealBroken):
        pool.attach(results.package_id).results()
    futures = [pool.submit(abs, number) for number in (-1, -2)]
    outcomes: list[Any] = [future.exception() or future.result() for future in futures]
    assert outcomes.count(1) + sum(isinstance(each, SealBroken) for each in outcomes) >= 1
    assert not (tmp_path / "marker").exists()


def test_g20_a_changed_blob_is_refused_unread(pool: Pool, sealing: FakeMaster, tmp_path: Path) -> None:
    sealing.automatic = False
    results = pool.map(bytes, [2_000] * 3)
    assert results.package_id
    stored = sealing.packages[results.package_id]
    code = stored.message.code.inline
    assert code is not None
    made = [sealing._run_task(stored, code, index) for index in range(3)]
    seal = sealing._seal
    sealed = [seal(stored, result) for result in made]
    sealing._seal = lambda stored, result: sealed[result.index]  # type: ignore[method-assign]
    evil = pickle.dumps(Writing(tmp_path / "marker"))
    (blob,) = {result.blob.key for result in made if result.blob}
    first = made[1].blob
    assert first is not None
    body = bytearray(sealing.blobs[blob])
    body[first.offset : first.offset + len(evil)] = evil
    sealing.blobs[blob] = bytes(body)
    sealing.publish(results.package_id, made)
    assert next(results) == bytes(2_000)
    with pytest.raises(SealBroken, match="task 1 "):
        next(results)
    assert next(results) == bytes(2_000)
    assert not (tmp_path / "marker").exists()


def test_results_of_a_reference_are_sealed_too(pool: Pool, sealing: FakeMaster) -> None:
    sealing.automatic = False
    results = pool.map(reference("math:sqrt"), [4])
    assert results.package_id
    sealing.tamper = lambda result: replace(result, data=b"\x03")
    sealing.publish(results.package_id, [TaskResult(0, "ok", 1, b"\x02")])
    with pytest.raises(SealBroken):
        next(results)


def test_g20_a_text_is_not_unpickled_if_the_master_calls_it_a_pickle(
    pool: Pool, sealing: FakeMaster, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    # Read as a pickle, this dict is a number of 218 bytes, and then the opening of a file.
    text = "x" * 216 + f"cbuiltins\nopen\n(V{marker}\nVw\ntR."
    value = {text: 0} | {str(number): 0 for number in range(9)}
    data = msgpack.encode(value)
    pickle.loads(data).close()
    marker.unlink()
    sealing.automatic = False
    results = pool.map(reference("json:loads"), ["{}"])
    assert results.package_id
    sealing.publish(results.package_id, [TaskResult(0, "ok", 1, data)])
    assert list(results) == [value]
    assert pool.attach(results.package_id).results() == [value]
    sealing.claimed_codec = "pickle"
    with pytest.raises(SealBroken, match=r"is MessagePack, but .* not unpickled"):
        pool.attach(results.package_id).results()
    assert not marker.exists()


def test_a_sealed_package_is_not_read_without_a_key(master: FakeMaster) -> None:
    with Pool(master.endpoint, TOKEN) as pool, pytest.raises(SealBroken, match="gives no key"):
        pool.attach(package_id("a", "k", sealed=True))
