"""What the standard library decorates functions of a script with, as it arrives where nothing of the script is."""

import functools
import pickle
from typing import Any

import pytest

from cloudpar.effects import capture
from cloudpar.serialization import dumps

SCRIPT = '''
import functools

calls = []

@functools.lru_cache(maxsize=7, typed=True)
def fibonacci(n):
    """The nth number."""
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

fibonacci.unit = "rabbits"

@functools.singledispatch
def shown(value):
    """How a value is shown."""
    return "?"

@shown.register
def _(value: int):
    return str(value)

@shown.register(list)
def _(value):
    return [shown(each) for each in value]

class Model:
    def __init__(self, size):
        self.size = size

    @functools.cached_property
    def doubled(self):
        """Twice the size."""
        return 2 * self.size

    @functools.lru_cache
    def times(self, n):
        return n * self.size

    @functools.singledispatchmethod
    def kind(self, value):
        return "any"

    @kind.register
    def _(self, value: int):
        return "int"

def uses_all(x):
    model = Model(x)
    return fibonacci(30), shown([x, "text", [x]]), model.doubled, model.times(3), model.kind(1), model.kind("")
'''


@pytest.fixture
def script() -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(SCRIPT, namespace)  # noqa: S102 - as Python runs a script
    return namespace


def test_a_function_that_uses_all_of_them_arrives(script: dict[str, Any]) -> None:
    assert pickle.loads(dumps(script["uses_all"], "f"))(4) == script["uses_all"](4)


def test_a_cached_function_keeps_its_parameters_and_attributes_and_starts_empty(script: dict[str, Any]) -> None:
    script["fibonacci"](20)
    arrived = pickle.loads(dumps(script["fibonacci"], "f"))
    assert arrived.cache_parameters() == {"maxsize": 7, "typed": True}
    assert (arrived.__name__, arrived.__doc__, arrived.unit) == ("fibonacci", "The nth number.", "rabbits")
    assert arrived.cache_info().currsize == 0
    assert arrived(30) == 832040
    assert arrived.cache_info().hits > 0


def test_a_generic_function_keeps_its_implementations_and_takes_more(script: dict[str, Any]) -> None:
    arrived = pickle.loads(dumps(script["shown"], "f"))
    assert (arrived.__name__, arrived.__doc__) == ("shown", "How a value is shown.")
    assert arrived([1, [2.0]]) == ["1", ["?"]]
    arrived.register(float, lambda value: f"{value:.1f}")
    assert arrived([1, [2.0]]) == ["1", ["2.0"]]


def test_a_cached_property_is_computed_once_for_an_object_that_arrives(script: dict[str, Any]) -> None:
    model = pickle.loads(dumps(script["Model"](4), "x"))
    assert "doubled" not in vars(model)
    assert model.doubled == 8
    assert vars(model)["doubled"] == 8
    assert type(model).doubled.__doc__ == "Twice the size."


def test_a_loop_may_use_all_of_them(script: dict[str, Any]) -> None:
    found = [None] * 3
    uses_all = script["uses_all"]

    def body(i: int) -> None:
        found[i] = uses_all(i)

    captured = capture(body)
    merge = captured.merge()
    for index in range(3):
        merge.add(index, captured.code(index))
    merge.commit()
    assert found == [uses_all(i) for i in range(3)]


def test_what_an_import_finds_travels_by_its_name() -> None:
    import fnmatch  # noqa: PLC0415 - of the standard library, with a cached function

    assert pickle.loads(dumps(fnmatch._compile_pattern, "f")) is fnmatch._compile_pattern  # type: ignore[attr-defined]
    assert isinstance(fnmatch._compile_pattern, type(functools.lru_cache(len)))  # type: ignore[attr-defined]
