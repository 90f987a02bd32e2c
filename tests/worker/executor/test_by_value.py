"""Results of classes and functions that only the client's `__main__` has, with decorators of the standard library."""

import subprocess
import sys
from typing import Any

import pytest

from cloudpar_worker.executor.failures import portable, serialize

SCRIPT = """
import functools

@functools.singledispatch
def shown(value):
    return "?"

@shown.register
def _(value: int):
    return "int"

class Model:
    def __init__(self, size):
        self.size = size

    @functools.cached_property
    def doubled(self):
        return 2 * self.size

    @functools.lru_cache
    def times(self, n):
        return n * self.size

    @functools.singledispatchmethod
    def kind(self, value):
        return shown(value)

class Refused(Exception):
    @functools.cached_property
    def length(self):
        return len(self.args)
"""


@pytest.fixture
def script() -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(SCRIPT, namespace)  # noqa: S102 - as Python runs a script
    return namespace


def evaluated(data: bytes, expression: str) -> str:
    """What a process without the script makes of a pickle: an expression of `x`."""
    code = f"import pickle, sys; x = pickle.loads(sys.stdin.buffer.read()); print(({expression}))"
    return subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True).stdout.decode()


def test_an_object_whose_class_has_decorated_methods_comes_back(script: dict[str, Any]) -> None:
    data = serialize(script["Model"](4))
    assert evaluated(data, "x.doubled, x.times(3), x.kind(1), x.kind('')") == "(8, 12, 'int', '?')\n"


def test_an_exception_whose_class_has_a_cached_property_comes_back(script: dict[str, Any]) -> None:
    data, reason = portable(script["Refused"](1, 2))
    assert reason == ""
    assert data is not None
    assert evaluated(data, "x.args, x.length") == "((1, 2), 2)\n"
