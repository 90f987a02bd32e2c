"""Results of classes and functions of the client's `__main__`, with decorators of the standard library."""

import subprocess
import sys
from typing import Any

import pytest

from cloudpar_worker.executor.failures import portable, serialize
from support import nested_script
from support.decorated_script import definitions


@pytest.fixture
def script() -> dict[str, Any]:
    return definitions()


def evaluated(data: bytes, expression: str) -> str:
    """The value of an expression of `x`, computed from a pickle in a process that does not have the script."""
    code = f"import pickle, sys; x = pickle.loads(sys.stdin.buffer.read()); print(({expression}))"
    return subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True).stdout.decode()


def test_an_object_whose_class_has_decorated_methods_comes_back(script: dict[str, Any]) -> None:
    data = serialize(script["Model"](4))
    assert evaluated(data, "x.doubled, x.times(3), x.kind(1), x.kind('')") == "(8, 12, 'int', 'any')\n"


def test_an_exception_whose_class_has_a_cached_property_comes_back(script: dict[str, Any]) -> None:
    data, reason = portable(script["Refused"](1, 2))
    assert reason == ""
    assert data is not None
    assert evaluated(data, "x.args, x.length") == "((1, 2), 2)\n"


@pytest.mark.parametrize("name", nested_script.NAMES)
def test_a_function_comes_back_with_the_globals_that_it_uses(name: str) -> None:
    function = nested_script.definitions()[name]
    assert nested_script.run_elsewhere(serialize(function)) == repr(function(1))
