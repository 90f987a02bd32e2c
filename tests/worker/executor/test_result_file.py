"""Large results of an executor go into files in memory, with their large buffers marked."""

import errno
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloudpar_protocol.large_buffers import LARGE_BYTES, is_marked, loads
from cloudpar_worker.executor import by_value, result_file
from cloudpar_worker.executor.result_file import ResultFile, serialize

ARRAY = np.arange(LARGE_BYTES)


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def in_file(value: object) -> bytes:
    """The content of the file of a value."""
    made = serialize(value)
    assert isinstance(made, ResultFile)
    content = made.read()
    assert len(made) == len(content)
    made.close()
    return content


@pytest.mark.parametrize("value", [1, "text", [1.5] * 100, bytes(1000), np.arange(10)])
def test_a_small_value_is_bytes(value: Any) -> None:
    made = serialize(value)
    assert isinstance(made, bytes)
    assert np.array_equal(pickle.loads(made), value)


def test_an_array_is_marked_in_its_file() -> None:
    content = in_file(("name", ARRAY))
    assert is_marked(memoryview(content))
    np.testing.assert_array_equal(pickle.loads(content)[1], ARRAY)
    np.testing.assert_array_equal(loads(memoryview(bytearray(content)))[1], ARRAY)


def test_large_bytes_are_in_a_file_without_marks() -> None:
    content = in_file(bytes(LARGE_BYTES))
    assert content == pickle.dumps(bytes(LARGE_BYTES), 5)


def test_an_array_beside_an_object_that_plain_pickle_refuses_is_in_a_file() -> None:
    content = in_file((ARRAY, lambda: 7))
    array, function = pickle.loads(content)
    np.testing.assert_array_equal(array, ARRAY)
    assert function() == 7


def test_a_result_that_the_agent_cannot_read_at_once_is_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_file, "MOST_BYTES", 2 * LARGE_BYTES)
    before = descriptors()
    for value in (ARRAY, bytes(3 * LARGE_BYTES)):
        made = serialize(value)
        assert isinstance(made, bytes)
        assert np.array_equal(pickle.loads(made), value)
    assert descriptors() == before


@pytest.mark.parametrize("error", [AttributeError, OSError])
def test_without_files_in_memory_large_results_are_bytes(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS and some builds of Python have none, and a container may refuse them."""

    def refuse(*_: object) -> int:
        raise error

    monkeypatch.setattr(os, "memfd_create", refuse)
    for value in (ARRAY, bytes(LARGE_BYTES), (ARRAY, len)):
        made = serialize(value)
        assert isinstance(made, bytes)
        assert pickle.dumps(pickle.loads(made)) == pickle.dumps(value)


def test_a_file_that_does_not_fit_into_memory_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    before = descriptors()
    monkeypatch.setattr(result_file._Bounded, "write", refuse)
    assert isinstance(serialize(ARRAY), bytes)
    assert descriptors() == before


def test_a_value_that_nothing_pickles_leaves_no_file() -> None:
    class Refuses:
        def __reduce__(self) -> Any:
            raise ValueError("no")

    before = descriptors()
    with pytest.raises(ValueError, match="no"):
        serialize((ARRAY, Refuses()))
    assert descriptors() == before


def test_the_second_pickler_starts_with_an_empty_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one may have written much before it raised."""
    content = in_file([bytes(4 * LARGE_BYTES), ARRAY, lambda: 7])
    assert content[-1:] != pickle.STOP
    assert pickle.loads(content)[0] == bytes(4 * LARGE_BYTES)
    made = ResultFile()
    made.fill(lambda file: file.write(b"a long text"))
    made.fill(lambda file: file.write(b"short"))
    assert (made.read(), len(made), os.fstat(made.descriptor).st_size) == (b"short", 5, 5)
    made.close()


def test_by_value_and_files_give_equal_objects() -> None:
    value = {"array": ARRAY, "function": len}
    assert pickle.loads(by_value.dumps(value)).keys() == pickle.loads(in_file(value)).keys()
