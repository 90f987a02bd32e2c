"""Results contain copies of the classes of `__main__`, which must not change this process's classes."""

import io
import pickle
import subprocess
import sys
from typing import Any

import cloudpickle
import numpy as np
import pytest

from cloudpar._serialization.pickling import Pickler, dumps
from cloudpar._serialization.unpickling import loads
from cloudpar_protocol.large_buffers import LARGE_BYTES

SCRIPT = """
import enum, functools

scale = 1

class Model:
    made = 0

    @functools.lru_cache
    def times(self, n):
        return n

    def scaled(self):
        return scale

class Refused(Exception):
    limit = 1

class Color(enum.Enum):
    RED = 1
"""

ELSEWHERE = """
import cloudpickle, sys

class Other:
    def answer(self):
        return 42

sys.stdout.buffer.write(cloudpickle.dumps([Other(), Other()]))
"""


@pytest.fixture
def script() -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(SCRIPT, namespace)
    return namespace


def test_a_result_leaves_its_class_as_it_is_here(script: dict[str, Any]) -> None:
    model = script["Model"]
    data = dumps(model(), "x")
    method, script["scale"], model.made = model.scaled, 5, 7
    model.times(None, 3)
    assert type(loads(data)) is model
    assert (model.scaled is method, model().scaled(), model.made) == (True, 5, 7)
    assert model.times.cache_info().currsize == 1


def test_an_exception_within_another_pickle_leaves_its_class_as_it_is_here(script: dict[str, Any]) -> None:
    refused = script["Refused"]
    inner = dumps(refused("text"), "x")

    class Within:
        def __reduce__(self) -> Any:
            return pickle.loads, (inner,)

    data = cloudpickle.dumps(Within())
    refused.limit = 2
    assert type(loads(data)) is refused
    assert refused.limit == 2


def test_members_of_an_enumeration_are_those_that_are_here(script: dict[str, Any]) -> None:
    assert loads(dumps(script["Color"].RED, "x")) is script["Color"].RED


def test_a_class_that_is_not_here_comes_with_its_methods() -> None:
    data = subprocess.run([sys.executable, "-c", ELSEWHERE], capture_output=True, check=True).stdout
    first, second = loads(data)
    again = loads(data)[0]
    assert [each.answer() for each in (first, second, again)] == [42, 42, 42]
    assert type(first) is type(second) is type(again)


def test_an_array_uses_the_memory_of_its_pickle_if_this_is_a_bytearray() -> None:
    file = io.BytesIO()
    Pickler(file).append(np.arange(LARGE_BYTES))
    memory = bytearray(file.getvalue())
    array = loads(memory)
    array[:] = 7
    assert array.tobytes() in memory
    assert (loads(bytes(memory)) == 7).all()
