"""Payloads that an executor maps: tasks share the memory of the file, and none changes it."""

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
from cloudpar_worker.executor.mapped_payload import Mapped, MappedItems

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
