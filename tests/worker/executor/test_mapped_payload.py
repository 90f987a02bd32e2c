"""Payloads that an executor maps: tasks share the memory of the file, and none changes it."""

import errno
import mmap
import os
import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloudpar._serialization.packer import Packer
from cloudpar_protocol.large_buffers import LARGE_BYTES
from cloudpar_worker.executor.mapped_payload import MOST_MAPPINGS, Mapped, MappedItems

ARRAYS = [np.arange(LARGE_BYTES + number) for number in range(3)]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """A file with the data of tasks, one for each of ARRAYS, as a client packs it."""
    packer = Packer()
    for array in ARRAYS:
        packer.append(("name", array))
    blob = packer.finish()
    path = tmp_path / "data"
    path.write_bytes(blob.read(0, blob.size))  # type: ignore[union-attr]
    packer.close()
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def places(file: int) -> list[tuple[int, int]]:
    table = os.pread(file, 8 * (len(ARRAYS) + 1), os.fstat(file).st_size - 8 * (len(ARRAYS) + 1))
    offsets = memoryview(table).cast("Q").tolist()
    return list(pairwise(offsets))


def is_mapped(array: "np.ndarray[Any, Any]") -> bool:
    memory: object = array
    while isinstance(memory, np.ndarray):
        memory = memory.base
    return isinstance(memory, memoryview) and isinstance(memory.obj, mmap.mmap)


def test_an_array_is_a_part_of_the_mapped_file_and_aligned(file: int) -> None:
    items = MappedItems(file, places(file))
    for position, array in enumerate(ARRAYS):
        name, found = items[position].load()
        assert (name, is_mapped(found), found.ctypes.data % 64) == ("name", True, 0)
        np.testing.assert_array_equal(found, array)


def test_a_task_that_writes_into_an_array_changes_only_its_own_copy(file: int) -> None:
    items = MappedItems(file, places(file))
    _, first = items[0].load()
    first[:] = 7
    _, again = items[0].load()
    np.testing.assert_array_equal(again, ARRAYS[0])
    assert (first == 7).all()


def test_an_array_outlives_the_descriptor(file: int) -> None:
    own = os.dup(file)
    _, found = MappedItems(own, places(file))[2].load()
    os.close(own)
    np.testing.assert_array_equal(found, ARRAYS[2])


def test_a_pickle_without_large_buffers_is_read_as_usual(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"other" + pickle.dumps(["x"] * 10))
    with path.open("rb") as opened:
        assert Mapped.of(opened.fileno(), (5, path.stat().st_size)).load() == ["x"] * 10


def test_arguments_that_a_function_keeps_are_copied_from_some_number_on(file: int) -> None:
    """Before Python 3.13 each mapping keeps a descriptor open, and the task needs descriptors, too."""
    before = len(list(Path("/dev/fd").iterdir()))
    items = MappedItems(file, places(file))
    kept = [items[0].load()[1] for _ in range(MOST_MAPPINGS + 10)]
    assert [is_mapped(array) for array in kept] == [True] * MOST_MAPPINGS + [False] * 10
    assert len(list(Path("/dev/fd").iterdir())) <= before + MOST_MAPPINGS
    assert all(np.array_equal(array, ARRAYS[0]) for array in kept)
    kept.clear()
    assert is_mapped(items[0].load()[1])


def test_a_payload_that_cannot_be_mapped_is_read(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(mmap, "mmap", refuse)
        _, found = MappedItems(file, places(file))[1].load()
    np.testing.assert_array_equal(found, ARRAYS[1])


def test_an_empty_place_is_empty(file: int) -> None:
    assert bytes(Mapped.of(file, (4096, 4096)).data) == b""
