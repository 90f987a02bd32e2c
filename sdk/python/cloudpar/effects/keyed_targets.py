"""Gathers the writes to lists, dicts and attributes. Each write has a key, and only one task may write to a key."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from .remote.containers import attributes, slots
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph import Facet
    from .trails import Trail

_ABSENT = object()


def keyed_targets(facets: tuple[Facet, ...]) -> dict[int, Target]:
    """Return the targets of all lists, dicts and objects with attributes, by number. A target gathers writes."""
    kinds: dict[str, Callable[[Any, Trail], Target]] = {
        "list": _ListTarget,
        "dict": _DictTarget,
        "attributes": _AttributesTarget,
    }
    return {
        number: kinds[facet.kind](facet.thing, facet.trail)
        for number, facet in enumerate(facets)
        if facet.kind in kinds
    }


class _KeyedTarget(Target):
    """The writes to one object, by key. A key is a dict's key, a position in a list, or a name, so it is hashable."""

    def __init__(self, thing: Any, trail: Trail) -> None:
        super().__init__(thing, trail)
        self._writes: dict[Any, tuple[int, Any]] = {}
        self._before: list[tuple[Any, Any]] = []

    def gather(self, index: int, keys: Any, values: Any) -> tuple[Trail, int] | None:
        self.task = index
        for key, value in zip(keys, values, strict=True):
            other = self._writes.setdefault(key, (index, value))[0]
            if other != index:
                return self.name(key), other
            self._writes[key] = (index, value)
        return None

    def apply(self) -> None:
        # Writes are applied in the order of the tasks, so that new keys have the order of a plain loop.
        for key, (_, value) in sorted(self._writes.items(), key=lambda write: write[1][0]):
            self._before.append((key, self.read(key)))
            self.write(key, value)

    def take_back(self) -> None:
        for key, value in reversed(self._before):
            if value is not _ABSENT:
                self.write(key, value)
            elif self.read(key) is not _ABSENT:
                self.delete(key)

    def check(self) -> None:
        """Accept the object as it is: dicts and attributes take any key."""

    def name(self, key: Any) -> Trail:
        return self.trail.item(key)

    @abstractmethod
    def read(self, key: Any) -> Any: ...

    @abstractmethod
    def write(self, key: Any, value: Any) -> None: ...

    @abstractmethod
    def delete(self, key: Any) -> None: ...


class _ListTarget(_KeyedTarget):
    """A list or an instance of a subclass. Methods of a subclass are not called, since the worker has called them."""

    def __init__(self, thing: Any, trail: Trail) -> None:
        super().__init__(thing, trail)
        self._length = list.__len__(thing)

    def check(self) -> None:
        if list.__len__(self.thing) != self._length:
            raise self.moved()

    def read(self, key: Any) -> Any:
        return list.__getitem__(self.thing, key)

    def write(self, key: Any, value: Any) -> None:
        list.__setitem__(self.thing, key, value)

    def delete(self, key: Any) -> None:
        raise AssertionError(key)


class _DictTarget(_KeyedTarget):
    """A dict, or an instance of a subclass."""

    def __init__(self, thing: Any, trail: Trail) -> None:
        super().__init__(thing, trail)
        self._base: Any = OrderedDict if isinstance(thing, OrderedDict) else dict

    def read(self, key: Any) -> Any:
        return dict.get(self.thing, key, _ABSENT)

    def write(self, key: Any, value: Any) -> None:
        self._base.__setitem__(self.thing, key, value)

    def delete(self, key: Any) -> None:
        self._base.__delitem__(self.thing, key)


class _AttributesTarget(_KeyedTarget):
    """An object's attributes, in its `__dict__` or in slots."""

    def __init__(self, thing: Any, trail: Trail) -> None:
        super().__init__(thing, trail)
        self._slots = slots(type(thing))

    def name(self, key: Any) -> Trail:
        return self.trail.attribute(key)

    def read(self, key: Any) -> Any:
        return attributes(self.thing, self._slots).get(key, _ABSENT)

    def write(self, key: Any, value: Any) -> None:
        if key in self._slots:
            self._slots[key].__set__(self.thing, value)
        else:
            self.thing.__dict__[key] = value

    def delete(self, key: Any) -> None:
        if key in self._slots:
            self._slots[key].__delete__(self.thing)
        else:
            del self.thing.__dict__[key]
