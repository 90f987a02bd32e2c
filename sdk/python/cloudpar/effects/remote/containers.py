"""Lists, dicts, sets and objects with attributes: finds what a task has changed in them, and undoes the changes.

A *look* is a function without arguments. It returns None if its container is unchanged; otherwise it returns a
*finding* `(problem, keys, values, undo)`. `problem` is empty if the `values` written at `keys` can be copied back.
Otherwise `problem` is a key of `PROBLEMS` in `cloudpar.effects.errors`, `keys` is a suffix for the container's name (or
the name that a task has bound to another value), and `values` is None. `undo()` restores the container; it is None if
that is impossible. A look changes nothing, so that all looks see the same state: the state after the task.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import zip_longest
from operator import is_not
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Undo = Callable[[], None]
    Finding = tuple[str, Any, Any, Undo | None]
    Look = Callable[[], Finding | None]
    Comparison = Callable[[list[Any], list[Any]], list[int]]


def watch_list(items: list[Any], differing: Comparison) -> Look:
    """Watch the items of a list or of a subclass's instance; attributes are watched separately."""
    every = slice(None)
    before: list[Any] = list.__getitem__(items, every)

    def look() -> Finding | None:
        if list.__len__(items) != len(before):
            return "resized", "", None, lambda: list.__setitem__(items, every, before)
        positions = differing(items, before)
        if not positions:
            return None

        def undo() -> None:
            for position in positions:
                list.__setitem__(items, position, before[position])

        return "", positions, [list.__getitem__(items, position) for position in positions], undo

    return look


def watch_dict(items: dict[Any, Any], differing: Comparison) -> Look:
    """Watch the values of a dict by key. A new key is a write.

    A deleted or moved key, or a new `default_factory`, is a problem.
    """
    # An OrderedDict keeps its order outside of the dict, and dict's own methods would not update this order.
    base: Any = OrderedDict if isinstance(items, OrderedDict) else dict
    keys, values = list(base.__iter__(items)), list(base.values(items))
    count = len(keys)
    factory = getattr(items, "default_factory", None)

    def look() -> Finding | None:
        if getattr(items, "default_factory", None) is not factory:
            return "opaque", ".default_factory", None, None
        now_keys, now = list(base.__iter__(items)), list(base.values(items))
        if len(now) < count or differing(now_keys, keys):
            gone = next(key for key, now_key in zip_longest(keys, now_keys) if now_key is not key)
            return "deleted", f"[{gone!r}]", None, undo_all
        changed = [*differing(now, values), *range(count, len(now))]
        if not changed:
            return None
        written = [now_keys[position] for position in changed]

        def undo() -> None:
            for position in changed:
                if position < count:
                    base.__setitem__(items, keys[position], values[position])
                else:
                    base.__delitem__(items, now_keys[position])

        return "", written, [now[position] for position in changed], undo

    def undo_all() -> None:
        base.clear(items)
        for key, value in zip(keys, values, strict=True):
            base.__setitem__(items, key, value)

    return look


def watch_set(items: set[Any]) -> Look:
    """Watch a set. Its changes are never copied back, because no order is defined for the changes of several tasks."""
    before = set.copy(items)

    def look() -> Finding | None:
        if set.__eq__(items, before) is True:
            return None
        return "set", "", None, undo

    def undo() -> None:
        set.clear(items)
        set.update(items, before)

    return look


def slots(kind: type) -> dict[str, Any]:
    """Return the descriptors of the attributes that instances of `kind` keep in slots, by name."""
    return {
        name: value
        for base in reversed(kind.__mro__)
        if "__slots__" in vars(base)
        for name, value in vars(base).items()
        if type(value) is MemberDescriptorType
    }


def attributes(thing: Any, descriptors: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes in the object's own `__dict__` and in the slots of `descriptors`, by name."""
    found = dict(getattr(thing, "__dict__", ()))
    for name, descriptor in descriptors.items():
        try:
            found[name] = descriptor.__get__(thing)
        except AttributeError:
            continue
    return found


def watch_attributes(thing: Any) -> Look:
    """Watch the attributes of one object.

    A new attribute is a write. A deleted attribute, or a new class of the object, is a problem.
    """
    kind = type(thing)
    descriptors = slots(kind)
    before = attributes(thing, descriptors)
    names, values = list(before), list(before.values())

    def look() -> Finding | None:
        if type(thing) is not kind:
            return "opaque", ".__class__", None, lambda: object.__setattr__(thing, "__class__", kind)
        now = attributes(thing, descriptors)
        same = len(now) == len(before) and not any(map(is_not, now.values(), values))
        if same and list(now) == names:
            return None
        gone = next((name for name in names if name not in now), None)
        if gone is not None:
            return "deleted", f".{gone}", None, undo
        absent = object()
        written = [name for name, value in now.items() if before.get(name, absent) is not value]
        return ("", written, [now[name] for name in written], undo) if written else None

    def undo() -> None:
        namespace = getattr(thing, "__dict__", None)
        if namespace is not None:
            namespace.clear()
            namespace.update((name, value) for name, value in before.items() if name not in descriptors)
        for name, descriptor in descriptors.items():
            if name in before:
                descriptor.__set__(thing, before[name])
            elif name in attributes(thing, {name: descriptor}):
                descriptor.__delete__(thing)

    return look
