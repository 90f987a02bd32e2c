"""What a caller of map may set, and how its iterables become task data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .argument_types import seconds, whole

if TYPE_CHECKING:
    from cloudpar_protocol.payloads import CallStyle

    from .retry import Retry


@dataclass(frozen=True)
class Limits:
    """See `Pool.map`; refuses what makes no sense, in the words of concurrent.futures."""

    timeout: float | None = None
    chunksize: int | None = None
    buffersize: int | None = None
    task_timeout_s: float | None = None
    retry: "Retry | None" = None
    return_exceptions: bool = False

    def __post_init__(self) -> None:
        vars(self)["chunksize"] = whole("chunksize", self.chunksize)
        for name in ("timeout", "task_timeout_s"):
            vars(self)[name] = seconds(name, getattr(self, name))
        if self.chunksize is not None and self.chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if self.buffersize is not None and not isinstance(self.buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if self.buffersize is not None and self.buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        if self.task_timeout_s is not None and self.task_timeout_s <= 0:
            raise ValueError(f"task_timeout_s={self.task_timeout_s}: give a positive number of seconds, or None")


def arguments(iterables: tuple[Iterable[Any], ...]) -> "tuple[Iterable[Any], CallStyle]":
    """The task data of a map over one iterable or several, and how the function is called with it."""
    if not iterables:
        raise TypeError("map needs at least one iterable besides the function")
    if len(iterables) == 1:
        return iterables[0], "value"
    return zip(*iterables, strict=False), "args"
