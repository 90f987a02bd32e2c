"""`snapshot`: functions that are serialized once for many calls, with everything that they capture."""

import functools
import logging
import pickle
import threading
import zlib
from typing import Any

from ._serialization.task_code import Code, serialize

LARGE_BYTES = 10 << 20
"""If a call serializes at least this many bytes, and an earlier call has serialized the same bytes, a warning is
logged.
"""

log = logging.getLogger("cloudpar")


class Snapshot:
    """A function in its serialized form. `snapshot` returns such an object."""

    def __init__(self, function: Any) -> None:
        self.code = serialize(function)
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function in this process."""
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.code.data,)


def snapshot(function: Any) -> Snapshot:
    """Serialize a function once for many calls of `Pool.submit` and `Pool.map`, with everything that it captures now.

    If a function captures a large array or data frame, each call without a snapshot serializes the function and the
    data again, since the data may have changed. A snapshot contains the data as it was when the snapshot was made.

    Args:
        function: Any callable. Use `functools.partial` to bind arguments to a callable.

    Raises:
        SerializationError: The function cannot be pickled; the text names the part that is the cause.
        TooLarge: The function, with what it captures, takes more than 1 GiB.
        TypeError: The function is not callable, or is an async function.

    Example:
        >>> from cloudpar import Pool, snapshot
        >>> table = list(range(1000))
        >>> total = snapshot(lambda start: sum(table[start:]))
        >>> table.clear()
        >>> with Pool(workers=2) as pool:
        ...     [pool.submit(total, start).result() for start in (0, 998)]
        [499500, 1997]
    """
    return Snapshot(function)


class Repetitions:
    """Warns, once per function, when a call serializes the same large bytes as an earlier call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[object, None] = {}
        self._warned: set[str] = set()

    def of_code(self, code: Code) -> None:
        """Record that a call has serialized this function."""
        if len(code.data) >= LARGE_BYTES and self._again(code.hash, code.name):
            log.warning(
                "cloudpar: another call serializes %s with the same %d MB that it captures: "
                "f = cloudpar.snapshot(f) does that once for many calls",
                code.name, len(code.data) >> 20,
            )  # fmt: skip

    def of_arguments(self, code: Code, data: bytes) -> None:
        """Record that a call of `submit` has serialized these arguments."""
        if len(data) >= LARGE_BYTES and self._again((len(data), zlib.crc32(data)), f"{code.name}()"):
            log.warning(
                "cloudpar: another call serializes the same %d MB of arguments of %s: "
                "f = cloudpar.snapshot(functools.partial(f, data)) does that once for many calls",
                len(data) >> 20, code.name,
            )  # fmt: skip

    def _again(self, key: object, name: str) -> bool:
        with self._lock:
            if key not in self._sent:
                self._sent[key] = None
                return False
            first = name not in self._warned
            self._warned.add(name)
            return first
