"""Writes that cannot be copied back: each body raises, names the variable, and leaves memory unchanged."""

from __future__ import annotations

import array
import copy
import pickle
import random
import threading
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

import pytest

from cloudpar.effects import SideEffectError, capture
from sdk.effects.loop import alone, failure, parallel_for

if TYPE_CHECKING:
    from collections.abc import Callable


def _refuse() -> None:
    raise LookupError("not on this machine")


class Unreadable:
    """Its pickle can be made, and not read."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _refuse, ()


_counter = 0
_registry: dict[str, list[int]] = {"values": [0, 0]}


@pytest.mark.parametrize(
    "change",
    [
        lambda items: items.append(1),
        lambda items: items.__delitem__(0),
        lambda items: items.insert(1, 1),
        lambda items: items.clear(),
        lambda items: items.extend([1, 2]),
        lambda items: items.pop(),
    ],
)
def test_a_list_of_another_length_is_refused(change: Callable[[list[int]], None]) -> None:
    items = [3, 2, 1]
    grid = [items]

    def body(i: int) -> None:
        change(grid[0])

    error = failure(body)
    assert error.variable == "grid[0]"
    assert "task" in str(error)
    assert "changed its length" in str(error)
    assert items == [3, 2, 1]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda found: found.pop("a"), "found['a']"),
        (lambda found: found.clear(), "found['a']"),
        (lambda found: found.move_to_end("b"), "found['b']"),
    ],
)
def test_a_dict_with_a_deleted_or_moved_key_is_refused(change: Callable[[dict[str, int]], object], name: str) -> None:
    found = OrderedDict(a=1, b=2, c=3)
    assert failure(lambda i: change(found)).variable == name
    assert list(found.items()) == [("a", 1), ("b", 2), ("c", 3)]


def test_a_changed_set_is_refused() -> None:
    members = {1}

    def body(i: int) -> None:
        members.add(i)

    error = failure(body)
    assert (error.variable, error.index, members) == ("members", 0, {1})
    assert "d[key] = True" in str(error)


def test_a_deleted_attribute_is_refused() -> None:
    class Thing:
        def __init__(self) -> None:
            self.total = 0

    obj = Thing()

    def body(i: int) -> None:
        del obj.total

    assert failure(body).variable == "obj.total"
    assert obj.total == 0


def test_a_changed_class_or_default_factory_is_refused() -> None:
    class Left: ...

    class Right: ...

    obj = Left()
    found: defaultdict[int, list[int]] = defaultdict(list)

    def turn(i: int) -> None:
        obj.__class__ = Right  # type: ignore[assignment]

    def refit(i: int) -> None:
        found.default_factory = None

    assert failure(turn).variable == "obj.__class__"
    assert failure(refit).variable == "found.default_factory"


def test_a_rebound_global_is_refused() -> None:
    def body(i: int) -> None:
        global _counter  # noqa: PLW0603 - what is tested
        _counter += 1

    exec_globals: dict[str, Any] = {"__name__": "__main__", "_counter": 0}
    exec("def body(i):\n    global _counter, _new\n    _counter += 1\n    _new = 1\n", exec_globals)
    for each in (body, exec_globals["body"]):
        error = failure(each)
        assert error.variable == "_counter"
        assert "is a global" in str(error)
        assert "use map" in str(error)
    assert (_counter, exec_globals["_counter"]) == (0, 0)


def test_a_new_global_is_refused() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("def body(i):\n    global fresh\n    fresh = i\n", names)
    assert failure(names["body"]).variable == "fresh"


def test_writes_to_a_global_container_are_copied_back() -> None:
    before = copy.deepcopy(_registry)

    def body(i: int) -> None:
        _registry["values"][i] = i + 1

    parallel_for(0, 2, body)
    assert _registry == {"values": [1, 2]}
    _registry.update(before)


def test_a_rebound_nonlocal_is_refused() -> None:
    total = 0

    def body(i: int) -> None:
        nonlocal total
        total += i

    error = failure(body)
    assert (error.variable, error.index, total) == ("total", 1, 0)
    assert "is a nonlocal" in str(error)


def test_a_rebound_nonlocal_of_a_helper_is_refused() -> None:
    total = 0

    def add(i: int) -> None:
        nonlocal total
        total += i + 1

    def body(i: int) -> None:
        add(i)

    assert failure(body).variable == "total"


def test_a_nonlocal_that_was_unbound_before_is_refused_and_unbound_again() -> None:
    def make() -> Callable[[int], object]:
        later = 0

        def body(i: int) -> None:
            nonlocal later
            if i == 0:
                later = i
            else:
                del later

        del later
        return body

    task = alone(make())
    assert task(0) is not None
    with pytest.raises(NameError):
        task(1)


def test_an_opaque_object_that_can_no_longer_be_pickled_is_refused() -> None:
    thing: deque[Any] = deque()
    assert failure(lambda i: thing.append(threading.Lock())).variable == "thing"


def test_replaced_defaults_are_refused() -> None:
    def helper(a: int = 0) -> int:
        return a

    def body(i: int) -> None:
        helper.__defaults__ = (i,)

    assert failure(body).variable == "helper"


@pytest.mark.parametrize(
    ("thing", "change"),
    [
        (deque([1]), lambda thing: thing.append(1)),
        (bytearray(b"abc"), lambda thing: thing.__setitem__(0, 7)),
        (array.array("i", [1, 2]), lambda thing: thing.__setitem__(0, 7)),
        (random.Random(1), lambda thing: thing.random()),
        (iter([1, 2, 3]), next),
    ],
)
def test_changed_opaque_objects_are_refused(thing: Any, change: Callable[[Any], object]) -> None:
    before = pickle.dumps(thing)

    def body(i: int) -> None:
        if i == 1:
            change(thing)

    error = failure(body, 5)
    assert error.variable == "thing"
    assert "cannot be copied back" in str(error)
    assert pickle.dumps(thing) == before


def test_opaque_objects_may_be_read() -> None:
    queue, raw = deque([1, 2, 3]), bytearray(b"abc")
    result = [0] * 3

    def body(i: int) -> None:
        result[i] = queue[i] + raw[i]

    parallel_for(0, 3, body)
    assert result == [98, 100, 102]


def test_a_changed_object_with_its_own_pickling_is_refused() -> None:
    class Custom:
        def __init__(self) -> None:
            self.items = [0, 0]

        def __getstate__(self) -> dict[str, Any]:
            return {"items": list(self.items)}

    custom = Custom()

    def body(i: int) -> None:
        custom.items[i] = 1

    assert failure(body).variable == "custom"
    assert custom.items == [0, 0]


def test_a_write_to_an_attribute_that_the_pickle_leaves_out_is_refused() -> None:
    class Forgetful:
        def __init__(self) -> None:
            self.items = [0, 0]
            self.lock = threading.Lock()

        def __reduce__(self) -> Any:
            return Forgetful, ()

    kept = Forgetful()
    result = [0, 0]

    def body(i: int) -> None:
        kept.items[i] = 1

    def reading(i: int) -> None:
        result[i] = kept.items[i] + 5

    assert failure(body).variable == "kept.items"
    assert kept.items == [0, 0]
    parallel_for(0, 2, reading)
    assert result == [5, 5]


def test_a_write_to_a_captured_namespace_dict_is_refused() -> None:
    class Thing:
        pass

    obj = Thing()
    names = vars(obj)

    def body(i: int) -> None:
        obj.a = i  # type: ignore[attr-defined]
        names["b"] = i

    assert failure(body).variable in {"names", "obj.a"}
    assert names == {}


def test_conflicts_name_the_element() -> None:
    result, grid, found = [0] * 5, [[0] * 9 for _ in range(3)], {"k": 0}

    class Thing:
        total = 0

    obj = Thing()

    def on_list(i: int) -> None:
        result[3] = i + 1

    def on_grid(i: int) -> None:
        grid[2][5] = i + 1

    def on_dict(i: int) -> None:
        found["new"] = i

    def on_attribute(i: int) -> None:
        obj.total = i + 1

    bodies = (on_list, on_grid, on_dict, on_attribute)
    errors = [failure(body) for body in bodies]
    assert [error.variable for error in errors] == ["result[3]", "grid[2][5]", "found['new']", "obj.total"]
    assert all("tasks 0 and 1" in str(error) and "two tasks" in str(error) for error in errors)
    assert (result, grid, found, vars(obj)) == ([0] * 5, [[0] * 9 for _ in range(3)], {"k": 0}, {})


def test_a_written_value_that_cannot_be_pickled_is_refused() -> None:
    result: list[Any] = [0, 0, 0]
    found: dict[str, Any] = {}

    class Thing:
        lock: Any = None

    obj = Thing()

    def in_list(i: int) -> None:
        result[0 if i else 1] = i
        result[2] = threading.Lock()

    def in_dict(i: int) -> None:
        found["lock"] = threading.Lock()

    def in_attribute(i: int) -> None:
        obj.lock = threading.Lock()

    named = [failure(body, 1).variable for body in (in_list, in_dict, in_attribute)]
    assert named == ["result[2]", "found['lock']", "obj.lock"]
    assert result == [0, 0, 0]


def test_a_written_value_that_cannot_be_unpickled_here_is_refused() -> None:
    result = [0]

    def body(i: int) -> None:
        result[i] = i

    merge = capture(body).merge()
    with pytest.raises(SideEffectError, match=r"cannot be read here .ModuleNotFoundError"):
        merge.add(0, b"\x80\x05cno_such_module\nThing\n.")


def test_a_written_value_whose_unpickling_fails_here_is_named() -> None:
    result: list[Any] = [0]
    found: dict[str, Any] = {"a": 1}

    class Thing:
        part: Any = None

    obj = Thing()

    def in_list(i: int) -> None:
        found["a"] = result
        result[i] = Unreadable()

    def in_dict(i: int) -> None:
        result[0] = [found]
        found["b"] = [Unreadable()]

    def in_attribute(i: int) -> None:
        obj.part = Unreadable()

    named = [failure(body, 1) for body in (in_list, in_dict, in_attribute)]
    assert [error.variable for error in named] == ["result", "found", "obj"]
    assert all("a value that cannot be read here (LookupError: not on this machine)" in str(each) for each in named)
    assert (result, found, obj.part) == ([0], {"a": 1}, None)


def test_body_that_raises_reports_no_writes_and_restores() -> None:
    result, found, members = [0, 0], {"a": 1}, {1}
    total = 0

    def body(i: int) -> None:
        nonlocal total
        if i == 0:
            result.append(1)
            result[0] = found["b"] = total = 5
            members.clear()
            del found["a"]
            raise KeyError(i)
        if (result, found, members, total) != ([0, 0], {"a": 1}, {1}, 0):
            raise AssertionError((result, found, members, total))

    task = alone(body)
    with pytest.raises(KeyError):
        task(0)
    assert task(1) is None


def test_state_is_restored_after_problem() -> None:
    items, thing = [1, 2], deque([1])

    def resize(i: int) -> None:
        if i == 0:
            items.append(3)
        elif items != [1, 2]:
            raise AssertionError(items)

    def spoil(i: int) -> None:
        if i == 0:
            thing.append(2)

    task = alone(resize)
    assert task(0) is not None
    assert task(1) is None
    # A change of a deque cannot be undone, so the next task must not run on what the first one left.
    task = alone(spoil)
    assert task(0) == task(1) is not None


def test_body_that_raises_on_something_opaque_leaves_no_trace() -> None:
    thing = deque([1])

    def body(i: int) -> None:
        thing.append(2)
        raise KeyError(i)

    task = alone(body)
    with pytest.raises(KeyError):
        task(0)
    assert task(1) is not None


def test_a_body_that_cannot_be_pickled_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match="lock"):
        capture(lambda i: lock.locked())
