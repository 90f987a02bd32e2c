"""Watches objects by comparing their pickles, because no other look can reach their state."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from .containers import attributes, slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from .containers import Finding, Look


def watch_opaque(thing: Any, dump: Callable[[Any], bytes]) -> Look:
    """Watch an object by its pickle, which is made now and after each task. A change of the object cannot be undone."""
    # An enum member pickles as its name; a task can change only its value.
    watched = thing._value_ if isinstance(thing, Enum) else thing
    before = dump(watched)

    def look() -> Finding | None:
        try:
            same = dump(watched) == before
        except Exception:  # noqa: BLE001 - pickling succeeded before the task, but may now raise anything
            same = False
        return None if same else ("opaque", "", None, None)

    return look


def watch_hidden(thing: Any, dump: Callable[[Any], bytes]) -> Look:
    """Watch the attributes of an object whose pickle may leave some out. A change is neither undone nor copied back.

    An attribute that cannot be pickled is compared by identity.
    """
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
    except Exception:  # noqa: BLE001 - an object's own pickling may raise anything; a lock is compared by identity
        return id(value)
