import functools
import logging
import pickle
from typing import Any

import pytest

from cloudpar import Pool, snapshot, snapshots
from cloudpar.errors import SerializationError
from support.fake_master import FakeMaster


def test_a_snapshot_does_not_see_later_changes_and_is_serialized_once(
    any_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = list(range(100))
    total = snapshot(lambda start: sum(table[start:]))
    table.clear()
    monkeypatch.setattr("cloudpar._serialization.task_code.pickled", None)  # serializing a function would now fail
    assert [any_pool.submit(total, start).result() for start in (0, 98)] == [4950, 197]
    assert list(any_pool.map(total, [0, 98], buffersize=1)) == [4950, 197]


def test_a_snapshot_is_a_function_here_and_within_data(any_pool: Pool) -> None:
    double = snapshot(functools.partial(int.__mul__, 2))
    assert double(4) == 8
    assert pickle.loads(pickle.dumps(double))(4) == 8
    assert any_pool.submit(lambda f: f(4), double).result() == 8


def test_a_loop_takes_a_snapshot_as_any_function(any_pool: Pool) -> None:
    found = [0] * 3

    def body(i: int) -> None:
        found[i] = i

    any_pool.parallel_for(0, 3, snapshot(body))
    assert found == [0, 1, 2]


def test_an_unpicklable_capture_is_refused_when_the_snapshot_is_made() -> None:
    numbers = (n for n in range(3))
    with pytest.raises(SerializationError, match="numbers"):
        snapshot(lambda: numbers)


def test_serializing_the_same_large_bytes_again_causes_one_warning(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(snapshots, "LARGE_BYTES", 10_000)
    frame: Any = bytearray(20_000)

    def size(x: int) -> int:
        return len(frame) + x

    with caplog.at_level(logging.WARNING, "cloudpar"):
        for _ in range(4):
            assert pool.submit(size, 1).result() == 20_001
        assert list(pool.map(size, [2])) == [20_002]
        for number in range(3):
            frame = bytearray([number]) * 20_000  # other data each time
            assert list(pool.map(size, [2])) == [20_002]
        for _ in range(3):
            assert pool.submit(len, bytes(20_000)).result() == 20_000
    first, second = caplog.messages
    assert "size with the same" in first
    assert "f = cloudpar.snapshot(f)" in first
    assert "arguments of len" in second
    assert "functools.partial" in second


def test_a_map_with_buffersize_serializes_its_function_once(pool: Pool, master: FakeMaster) -> None:
    state = {"factor": 2}
    results = pool.map(lambda x: x * state["factor"], range(6), buffersize=2)
    assert next(results) == 0
    state["factor"] = 100
    assert list(results) == [2, 4, 6, 8, 10]
