"""Finds captured objects in a task's writes, so that they are pickled as references to the caller's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arrays import address, span

if TYPE_CHECKING:
    from collections.abc import Callable

    Refer = Callable[[Any], Any]


def references(kinds: list[str], objects: list[Any]) -> Refer:
    """Return a function that returns an object's reference, or None for an object that the task made.

    A captured object is sent as its number, and a view of a captured array as its position in that array. At the
    client, the number becomes the caller's object, and the position becomes a view of the caller's array.
    """
    numbers: dict[int, int] = {}
    for number, thing in enumerate(objects):
        numbers.setdefault(id(thing), number)
    arrays = [number for number, kind in enumerate(kinds) if kind == "array"]
    places = [(number, *span(objects[number])) for number in arrays]
    array_type = type(objects[arrays[0]]) if arrays else None

    def refer(thing: Any) -> Any:
        number = numbers.get(id(thing))
        if number is not None:
            return number
        if type(thing) is array_type and thing.base is not None:
            return refer_view(thing)
        return None

    def refer_view(view: Any) -> Any:
        low, high = span(view)
        for number, start, end in places:
            if start <= low < high <= end:
                captured = objects[number]
                offset = address(view) - address(captured)
                return number, captured.strides, offset, view.shape, view.strides, view.dtype, id(view)
        return None

    return refer


def pickling(refer: Refer) -> tuple[Callable[[Any], bytes], Callable[[int], Any]]:
    """Return `dump(thing)` and `mark(number)`.

    `dump` pickles `thing` by its content, and captured objects inside `thing` by reference. `mark(number)` returns an
    object that is unpickled as this number. By this number the client knows to which object the following values were
    written, even if it cannot read these values.
    """
    import io
    from pickle import HIGHEST_PROTOCOL

    import cloudpickle

    class Mark:
        def __init__(self, number: int) -> None:
            self.number = number

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        root: Any = None

        def persistent_id(self, thing: Any) -> Any:
            if type(thing) is Mark:
                return (thing.number,)
            return None if thing is self.root else refer(thing)

    def dump(thing: Any) -> bytes:
        file = io.BytesIO()
        pickler = Pickler(file, HIGHEST_PROTOCOL)
        pickler.root = thing
        pickler.dump(thing)
        return file.getvalue()

    return dump, Mark
