"""What botocore's models say of a value: botocore itself checks types, required fields and minima only."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape


def broken(value: Any, shape: Shape, at: str = "") -> Iterator[str]:
    """Yield what a model does not permit of a value, and of the values within it."""
    least, most = shape.metadata.get("min", 0), shape.metadata.get("max", float("inf"))
    size = value if isinstance(value, (int, float)) else len(value) if hasattr(value, "__len__") else None
    if size is not None and "max" in shape.metadata and not least <= size <= most:
        yield f"{at} has {size}, and the model permits {least} to {most}"
    if isinstance(shape, StringShape) and isinstance(value, str):
        yield from _text(value, shape, at)
    for name, inner, its_shape in _inner(value, shape):
        yield from broken(inner, its_shape, f"{at}.{name}")


def _inner(value: Any, shape: Shape) -> Iterator[tuple[Any, Any, Shape]]:
    match shape:
        case StructureShape():
            yield from ((name, value[name], member) for name, member in shape.members.items() if name in value)
        case ListShape():
            yield from ((number, inner, shape.member) for number, inner in enumerate(value))
        case MapShape():
            yield from ((name, inner, shape.value) for name, inner in value.items())


def _text(value: str, shape: StringShape, at: str) -> Iterator[str]:
    if shape.enum and value not in shape.enum:
        yield f"{at} is {value!r}, which is none of {', '.join(shape.enum)}"
    pattern = _readable(shape.metadata.get("pattern", "(?s:.*)"))
    if pattern is not None and not pattern.fullmatch(value):
        yield f"{at} is {value!r}, which does not match {pattern.pattern}"


@cache
def _readable(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern of the models; None if it uses Java's syntax, as those for tags and descriptions do."""
    try:
        return re.compile(pattern)
    except re.error:
        return None
