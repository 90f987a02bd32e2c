"""Objects that keep their state where no look reaches: their pickles are compared."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from .containers import attributes, slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from .containers import Finding, Look


def watch_opaque(thing: Any, dump: Callable[[Any], bytes]) -> Look:
    """Watches an object by its pickle, at the cost of pickling it after each task. Nothing takes a change back."""
    # A member's pickle is its name; what a task can change is the value.
    watched = thing._value_ if isinstance(thing, Enum) else thing
    before = dump(watched)

    def look() -> Finding | None:
        try:
            same = dump(watched) == before
        except Exception:  # noqa: BLE001 - whatever its own pickling raises: it did not before the task
            same = False
        return None if same else ("opaque", "", None, None)

    return look


def watch_hidden(thing: Any, dump: Callable[[Any], bytes]) -> Look:
    """Watches the attributes of an object whose pickle may leave them out, which the caller's own never sees again."""
    descriptors = slots(type(thing))

    def state() -> dict[str, object]:
        return {name: _content(value, dump) for name, value in attributes(thing, descriptors).items()}

    before = state()

    def look() -> Finding | None:
        now = state()
        changed = [name for name in {**before, **now} if now.get(name) != before.get(name)]
        return ("opaque", f".{changed[0]}", None, None) if changed else None

    return look


def _content(value: Any, dump: Callable[[Any], bytes]) -> object:
    try:
        return dump(value)
    except Exception:  # noqa: BLE001 - whatever its own pickling raises: a lock is told by its identity
        return id(value)
