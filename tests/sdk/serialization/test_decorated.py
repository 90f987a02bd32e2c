"""Decorated functions of a script, in a process that does not have the script."""

import functools
import pickle
from typing import Any

import pytest

from cloudpar._serialization.pickling import dumps
from sdk.effects.loop import gathered
from support.decorated_script import definitions


@pytest.fixture
def script() -> dict[str, Any]:
    return definitions()


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

    gathered(body, *range(3)).commit()
    assert found == [uses_all(i) for i in range(3)]


def test_a_decorated_function_that_an_import_finds_travels_by_name() -> None:
    import fnmatch

    assert pickle.loads(dumps(fnmatch._compile_pattern, "f")) is fnmatch._compile_pattern  # type: ignore[attr-defined]
    assert isinstance(fnmatch._compile_pattern, type(functools.lru_cache(len)))  # type: ignore[attr-defined]
