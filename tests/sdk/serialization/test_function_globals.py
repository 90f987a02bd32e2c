import sys
import threading
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import pytest

from cloudpar._serialization.footprint import footprint
from cloudpar._serialization.pickling import dumps
from cloudpar.errors import SideEffectError
from cloudpar_protocol.function_globals import global_names
from sdk.effects.loop import gathered
from support.nested_script import NAMES, definitions, run_elsewhere


@pytest.fixture
def script() -> dict[str, Any]:
    return definitions()


@pytest.mark.parametrize("name", NAMES)
def test_a_function_arrives_with_all_that_classes_and_functions_in_it_use(script: dict[str, Any], name: str) -> None:
    function = script[name]
    assert run_elsewhere(dumps(function, name)) == repr(function(1))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "global_that_a_class_assigns"])
def test_a_body_of_a_loop_arrives_with_all_of_it(script: dict[str, Any], name: str) -> None:
    function, found = script[name], [None]

    def body(i: int) -> None:
        found[i] = function(1)

    gathered(body, 0).commit()
    assert found == [function(1)]


def test_a_global_that_a_class_in_a_body_assigns_is_noticed(script: dict[str, Any]) -> None:
    with pytest.raises(SideEffectError, match="`NEW` is a global and was bound to another value"):
        gathered(script["global_that_a_class_assigns"], 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_a_global_that_is_used_inside_is_seen(script: dict[str, Any], name: str) -> None:
    function = script[name]
    made_of = footprint(function)
    assert made_of is not None
    assert made_of.holds()
    used = [each for each in global_names(function.__code__) if each in script]
    assert used
    for each in used:
        before = script[each]
        script[each] = None
        assert not made_of.holds(), each
        script[each] = before
        assert made_of.holds(), each


def test_a_name_that_a_class_has_assigned_before_is_its_own(script: dict[str, Any]) -> None:
    exec("def f(x):\n class A:\n  lock = 3\n  y = lock\n return A.y", script)
    script["lock"] = threading.Lock()  # which does not pickle
    assert run_elsewhere(dumps(script["f"], "f")) == "3"


def test_a_submodule_that_is_imported_later_is_sent(script: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    package, part = ModuleType("paper"), ModuleType("paper.page")
    vars(package)["__path__"] = []
    monkeypatch.setitem(sys.modules, "paper", package)
    script["paper"] = package
    exec("def f(x):\n return paper.page.size\ndef g(x):\n return [paper.page.size for _ in x]", script)
    made_of = {name: footprint(script[name]) for name in ("f", "g")}
    assert all(each is not None and each.holds() for each in made_of.values())
    monkeypatch.setitem(sys.modules, "paper.page", part)
    assert not any(each is None or each.holds() for each in made_of.values())


def test_a_function_without_functions_in_it_is_as_cloudpickle_makes_it() -> None:
    made: Callable[[int], int] = FunctionType(compile("lambda x: x", "<cell>", "eval").co_consts[0], {})
    assert global_names(made.__code__) == ()
