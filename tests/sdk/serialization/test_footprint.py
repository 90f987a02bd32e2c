"""While a footprint holds, pickling the function or class again would give the same bytes."""

import collections
import dataclasses
import enum
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, Optional, Protocol, TypeVar

import cloudpickle
import pytest

from cloudpar._serialization.footprint import footprint

SCRIPT = """
SIZE = 1
TABLE = {"a": [1]}

class Base:
    pass

@dataclasses.dataclass
class Point(Base):
    x: int
    y: list[int] | None = None
    kinds = ["a"]

    @property
    def size(self):
        return self.x + SIZE

    @functools.cached_property
    def doubled(self):
        return 2 * self.x

    @classmethod
    def origin(cls, *, at=0):
        return cls(at)

class Colour(enum.Enum):
    RED = 1

class Pair(NamedTuple):
    a: int
    b: str = "x"

class Unit:
    def size(self):
        return SIZE

class Sized(Protocol):
    pass

class Counter(Sized):
    def size(self):
        return SIZE

UnitT = TypeVar("UnitT", bound=Unit)

@dataclasses.dataclass
class Box:
    first: list[Unit]
    second: Optional[Unit] = None

class Bag:
    one: UnitT

def annotated(unit: Unit):
    return unit.size()

def with_a_module(n):
    return settings.size

def f(n):
    return n and f(n - 1) + Point(n).size + Colour.RED.value + TABLE["a"][0] + helper(n)

def helper(n):
    return n
"""


@pytest.fixture
def script() -> dict[str, Any]:
    namespace: dict[str, Any] = {
        "__name__": "__main__",
        "dataclasses": dataclasses,
        "enum": enum,
        "functools": functools,
        "NamedTuple": NamedTuple,
        "Optional": Optional,
        "Protocol": Protocol,
        "TypeVar": TypeVar,
        "settings": ModuleType("settings"),
    }
    exec(SCRIPT, namespace)
    return namespace


@pytest.mark.parametrize("name", ["Point", "Colour", "Pair", "Box", "Bag", "annotated", "f", "helper"])
def test_a_footprint_holds_while_nothing_changes(script: dict[str, Any], name: str) -> None:
    made_of = footprint(script[name])
    assert made_of is not None
    assert made_of.holds()
    assert made_of.holds()


def replaced_code(script: dict[str, Any]) -> None:
    script["helper"].__code__ = (lambda n: n + 1).__code__


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a global": lambda script: script.update(SIZE=2),
    "a global that was missing": lambda script: script.update(value=2),
    "what is deep in a global": lambda script: script["TABLE"]["a"].append(2),
    "a key": lambda script: script["TABLE"].update(b=1),
    "a class attribute": lambda script: setattr(script["Point"], "more", 1),
    "what is in a class attribute": lambda script: script["Point"].kinds.append("b"),
    "an attribute of a base class": lambda script: setattr(script["Base"], "more", 1),
    "an attribute of a member": lambda script: setattr(script["Colour"].RED, "more", 1),
    "a method": lambda script: setattr(script["Point"], "origin", None),
    "the code of a function": replaced_code,
    "a default": lambda script: setattr(script["helper"], "__defaults__", (1,)),
    "a keyword's default": lambda script: script["Point"].origin.__func__.__kwdefaults__.update(at=1),
    "an attribute of a function": lambda script: setattr(script["helper"], "unit", "m"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_footprint_does_not_hold_after_a_change(
    script: dict[str, Any], change: Callable[[dict[str, Any]], object]
) -> None:
    made_of = footprint(script["f"])
    assert made_of is not None
    assert made_of.holds()
    change(script)
    assert not made_of.holds()


@pytest.mark.parametrize("name", ["Box", "Bag", "annotated"])
def test_a_class_that_an_annotation_leads_to_is_watched(script: dict[str, Any], name: str) -> None:
    made_of = footprint(script[name])
    assert made_of is not None
    script["SIZE"] = 2
    assert not made_of.holds()


@pytest.mark.parametrize("name", ["Counter", "with_a_module"])
def test_a_protocol_and_a_module_that_no_import_finds_have_no_footprint(script: dict[str, Any], name: str) -> None:
    assert footprint(script[name]) is None


def test_definitions_of_a_module_registered_with_cloudpickle_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("module_by_value")
    exec("SIZE = 1\ndef size():\n    return SIZE\n", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    by_name = footprint(module.size)
    cloudpickle.register_pickle_by_value(module)
    try:
        made_of = footprint(module.size)
        assert by_name is not None
        assert made_of is not None
        assert not by_name.holds()
        vars(module)["SIZE"] = 2
        assert not made_of.holds()
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def test_a_captured_variable_that_is_rebound_or_deleted_is_noticed() -> None:
    def closure() -> tuple[Callable[[], object], Callable[[object], None]]:
        value: object = 1

        def get() -> object:
            return value

        def put(new: object) -> None:
            nonlocal value
            value = new

        return get, put

    get, put = closure()
    get.__module__ = "__main__"
    made_of = footprint(get)
    assert made_of is not None
    put(2)
    assert not made_of.holds()


class Holder:
    pass


@pytest.mark.parametrize("value", [Holder(), bytearray(b"x"), [Holder()], list(range(10_000)), iter([1])])
def test_an_object_that_may_change_unnoticed_has_no_footprint(value: object) -> None:
    assert footprint(lambda: value) is None


def test_a_class_that_pandas_makes_for_rows_has_a_footprint() -> None:
    Row = collections.namedtuple("Row", "number text")  # noqa: PYI024 - as users write them
    Row.__module__ = "some.library"
    made_of = footprint(Row)
    assert made_of is not None
    assert made_of.holds()
