"""The options of one map, and how its iterables become the values of its tasks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .argument_types import check_iterables, flag, seconds_or_none, time_limit, whole, whole_or_none

if TYPE_CHECKING:
    from cloudpar_protocol.payloads import CallStyle

    from .pool_options import PoolOptions
    from .retry import Retry


@dataclass(frozen=True)
class MapOptions:
    """The options of one call; see `Pool.map`.

    Raises:
        TypeError: An option has a wrong type.
        ValueError: An option is out of its range. If `chunksize` or `buffersize` is below 1, the error has the same
            text as in concurrent.futures.
    """

    timeout: float | None = None
    chunksize: int | None = None
    buffersize: int | None = None
    task_timeout_s: float | None = None
    retry: "Retry | None" = None
    return_exceptions: bool = False

    def __post_init__(self) -> None:
        vars(self).update(
            timeout=seconds_or_none("timeout", self.timeout),
            chunksize=whole_or_none("chunksize", self.chunksize),
            task_timeout_s=time_limit("task_timeout_s", self.task_timeout_s),
            return_exceptions=flag("return_exceptions", self.return_exceptions),
        )
        if self.chunksize is not None and self.chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if self.buffersize is not None:
            takes = "buffersize must be an integer or None"
            vars(self)["buffersize"] = whole("buffersize", self.buffersize, takes=takes)
        if self.buffersize is not None and self.buffersize < 1:
            raise ValueError("buffersize must be None or > 0")

    def completed(self, pool: "PoolOptions") -> "MapOptions":
        """Return these options, with the pool's time limit and the pool's retries where the call gives none."""
        return replace(self, task_timeout_s=self.task_timeout_s or pool.task_timeout_s, retry=self.retry or pool.retry)


def arguments(call: str, iterables: tuple[Iterable[Any], ...]) -> "tuple[Iterable[Any], CallStyle]":
    """Return the values of a map's tasks, and how the function is called with each value.

    Several iterables are read in parallel, as `zip` does. The map ends with the shortest iterable.

    Args:
        call: The call's name for errors, such as "Pool.map".
        iterables: The caller's arguments after the function.

    Raises:
        TypeError: There is no iterable, or an argument is not iterable.
    """
    if not iterables:
        raise TypeError(f"{call}() needs at least one iterable besides the function")
    check_iterables(call, iterables)
    if len(iterables) == 1:
        return iterables[0], "value"
    return zip(*iterables, strict=False), "args"
