"""The names that the body's source gives to captured objects: `grid[2]`, `self.items`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trail:
    """The name that the body's source gives to a captured object, as a chain of steps.

    This object is the last step, and `parent` has the steps before it. The name is turned into text only when an error
    needs it, since a body may capture a million objects.

    Example:
        >>> str(Trail(None, "name", "grid").item(2).attribute("cells").item("left"))
        "grid[2].cells['left']"
    """

    parent: Trail | None
    kind: str
    key: object

    def item(self, key: object) -> Trail:
        """Return the name of this object's item with the given key, such as `grid[2]`."""
        return Trail(self, "item", key)

    def attribute(self, name: str) -> Trail:
        """Return the name of this object's attribute, such as `self.items`."""
        return Trail(self, "attribute", name)

    def __str__(self) -> str:
        steps = []
        trail: Trail | None = self
        while trail is not None:
            steps.append(_FORMS[trail.kind].format(trail.key))
            trail = trail.parent
        return "".join(reversed(steps))


_FORMS = {"name": "{}", "attribute": ".{}", "item": "[{!r}]"}


class Coordinates(tuple[int, ...]):
    """The index of an array's element, one number for each axis.

    Its text is what stands between NumPy's brackets, such as `2, 0`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return ", ".join(map(str, self)) or "()"
