import collections
import functools
import importlib.util
import math
import pickle
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from cloudpar import Pool
from cloudpar._serialization.installed import is_installed, project_path
from cloudpar._serialization.local_modules import LOCAL_MODULES, is_local
from cloudpar._serialization.pickling import dumps
from cloudpar._serialization.task_code import CodeCache, function_name
from cloudpar.errors import SerializationError

LOCK = threading.Lock()
HELPER = """
import math
OFFSET = 5
def shifted(x):
    return x + OFFSET + other(x)
def other(x):
    return int(math.sqrt(x))
class Point:
    def __init__(self, x):
        self.x = x
"""


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[types.ModuleType]:
    """A module of the user's project that was loaded from its path, so that no import finds it."""
    (tmp_path / "helper_of_a_user.py").write_text(HELPER)
    spec = importlib.util.spec_from_file_location("helper_of_a_user", tmp_path / "helper_of_a_user.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["helper_of_a_user"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("helper_of_a_user", None)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a module unknown, as at a worker."""

    def forget(name: str) -> None:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "path", [entry for entry in sys.path if is_installed(entry)])
        importlib.invalidate_caches()

    return forget


def test_modules_that_no_import_finds_travel_by_value(helper: types.ModuleType, absent: Callable[[str], None]) -> None:
    direct = dumps(helper.shifted, "f")
    namespace = {"helper": helper}
    exec("def indirect(x): return helper.shifted(x)", namespace)
    indirect = dumps(namespace["indirect"], "f")
    instance = dumps(helper.Point(3), "x")
    absent(helper.__name__)
    assert pickle.loads(direct)(4) == 11
    assert pickle.loads(indirect)(4) == 11
    assert pickle.loads(instance).x == 3


def test_the_users_own_use_of_cloudpickle_is_untouched(helper: types.ModuleType) -> None:
    dumps(helper.shifted, "f")
    assert helper.__name__ not in cloudpickle.list_registry_pickle_by_value()
    cloudpickle.register_pickle_by_value(helper)
    try:
        dumps(helper.shifted, "f")
        assert helper.__name__ in cloudpickle.list_registry_pickle_by_value()
    finally:
        cloudpickle.unregister_pickle_by_value(helper)


def test_by_value_may_be_nested(helper: types.ModuleType) -> None:
    with LOCAL_MODULES.by_value():
        dumps(helper.shifted, "f")
        assert helper.__name__ in cloudpickle.list_registry_pickle_by_value()
    assert helper.__name__ not in cloudpickle.list_registry_pickle_by_value()


@pytest.mark.parametrize("module", [math, collections, pytest, cloudpickle, sys.modules["cloudpar"], sys, "no module"])
def test_installed_modules_are_not_local(module: object) -> None:
    assert not is_local(module)


def test_project_path_has_the_project_and_nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    folders = project_path()
    assert str(tmp_path.resolve()) in folders
    assert not any("site-packages" in folder for folder in folders)


MAIN: dict[str, Any] = {"__name__": "__main__", "LOCK": LOCK}
exec("def unusable(x): return LOCK, x", MAIN)
unusable = MAIN["unusable"]


class Holder:
    def __init__(self, part: object) -> None:
        self.part = part

    def method(self) -> None:
        """Do nothing."""


class Slotted:
    __slots__ = ("part",)

    def __init__(self, part: object) -> None:
        self.part = part


class RefusesToPickle:
    def __reduce__(self) -> Any:
        raise RuntimeError("not me")


def capturing(value: object) -> Callable[[], object]:
    return lambda: value


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (unusable, r"the global `LOCK` that unusable uses \(_thread.lock\)"),
        (capturing(LOCK), r"the captured variable `value` of capturing.<locals>.<lambda>"),
        (functools.partial(print, LOCK), r"\.args\[0\] in x"),
        ([1, {"a": (2, LOCK)}], r"\[1\]\['a'\]\[1\] in x \(_thread.lock\)"),
        ({LOCK: 1}, r"the key <unlocked"),
        (Holder([LOCK]), r"\.part\[0\] in x"),
        (Slotted(LOCK), r"\.part in x"),
        (Holder(LOCK).method, r"\.__self__\.part in x"),
        (frozenset({LOCK}), r"an element of x"),
        ((i for i in range(3)), r"x \(generator\)"),
        (RefusesToPickle(), r"x \(.*RefusesToPickle\): not me"),
        (lambda a=LOCK: a, r"default 0 of <lambda>|default 0 of .*<lambda>"),
    ],
)
def test_the_part_that_does_not_pickle_is_named(value: object, name: str) -> None:
    with pytest.raises(SerializationError, match=name) as caught:
        dumps(value, "x")
    assert re.search("leave it out, or make it inside the task|give a list of its values", str(caught.value))
    assert isinstance(caught.value, TypeError)
    assert caught.value.__cause__ is not None


def test_too_deeply_nested_data_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(SerializationError, match="nested too deeply"):
        dumps(deep, "x")
    while deep:  # the garbage collector's recursion has its limit too
        deep = deep.pop()


def square(x: int) -> int:
    return x * x


def test_code_is_serialized_once() -> None:
    codes = CodeCache()
    for function in (square, len, math.sqrt, capturing(5), lambda x: square(x)):  # noqa: PLW0108 - a lambda is what is tested
        assert codes.get(function) is codes.get(function)


def test_a_changed_global_is_noticed() -> None:
    codes = CodeCache()
    namespace: dict[str, Any] = {"__name__": "__main__", "SIZE": 1}
    exec("def f(): return SIZE", namespace)
    assert pickle.loads(codes.get(namespace["f"]).data)() == 1
    namespace["SIZE"] = 2
    assert pickle.loads(codes.get(namespace["f"]).data)() == 2


def test_function_names_are_short_and_bounded() -> None:
    assert function_name(square) == "square"
    assert function_name(functools.partial(square, 3)) == "square"
    assert function_name(Holder(1)) == "Holder"
    assert function_name(len) == "len"
    assert len(function_name(type("x" * 500, (), {})())) == 200


@pytest.mark.parametrize(
    ("part", "advice"),
    [
        (Future(), r"\[0\] in x \(concurrent.futures._base.Future\): .*give what its result\(\) returns"),
        (ThreadPoolExecutor(1), r"\[0\] in x \(.*ThreadPoolExecutor\): .*a task that starts tasks makes one inside"),
        ((n for n in range(3)), r"\[0\] in x \(generator\): .*give a list of its values"),
    ],
    ids=["future", "executor", "generator"],
)
def test_the_error_has_advice_for_the_unpicklable_part(part: object, advice: str) -> None:
    with pytest.raises(SerializationError, match=advice):
        dumps([part], "x")


def test_a_future_of_a_pool_is_refused_as_an_argument(any_pool: Pool) -> None:
    future: Any = any_pool.submit(abs, -3)
    with pytest.raises(SerializationError, match=r"give what its result\(\) returns"):
        any_pool.submit(abs, future)
    with pytest.raises(SerializationError, match=r"give what its result\(\) returns"):
        any_pool.map(abs, [1, future])
    with pytest.raises(SerializationError, match=r"give list\(results\)"):
        any_pool.submit(list, any_pool.map(abs, [1]))
    assert future.result() == 3
