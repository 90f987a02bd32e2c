"""Large arguments that many calls of `joblib.Parallel` have in common."""

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from cloudpar.snapshots import Snapshot, snapshot

LARGE_BYTES = 1_000_000
"""From this size on, in bytes, the function of several tasks captures an argument that they have in common. joblib's
own processes share arrays from the same size on."""

Call = tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]


class CommonArguments:
    """The large arguments that several tasks have in common. The function of these tasks captures them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # joblib starts tasks in several threads
        self._seen: dict[int, weakref.ref[Any]] = {}
        self._captured: dict[int, Any] = {}
        self._used: set[int] = set()
        self._code = _code({})

    def task(self, calls: Sequence[Call]) -> tuple[Snapshot, list[Any]]:
        """Return the function and the argument of a task that makes some calls and returns their results."""
        large = {id(value): value for _, args, kwargs in calls for value in (*args, *kwargs.values()) if _size(value)}
        with self._lock:
            if large:
                self._capture({key: value for key, value in large.items() if self._is_known(key, value)})
            numbers = {key: number for number, key in enumerate(self._captured) if key in large}
            self._used |= numbers.keys()
            code = self._code if numbers else _code({})
        return code, [_without(call, numbers) for call in calls]

    def forget_values(self) -> None:
        """Serialize all arguments again if further tasks have them."""
        with self._lock:
            self._captured = {}
            self._code = _code({})
            self._seen = {key: seen for key, seen in self._seen.items() if seen() is not None}

    def _is_known(self, key: int, value: Any) -> bool:
        """Whether an earlier task had this argument."""
        known = self._seen.get(key)
        if key in self._captured or (known is not None and known() is value):
            return True
        try:
            self._seen[key] = weakref.ref(value)
        except TypeError:  # without a reference, another object could get its id
            self._seen.pop(key, None)
        return False

    def _capture(self, common: dict[int, Any]) -> None:
        """Capture the arguments that tasks have in common, unless it costs too much.

        Each time, all captured arguments are serialized again. So this happens only if the new ones are as large as the
        earlier ones. Arguments that no task has had since the last time are left out, so that a long stream of
        arguments does not fill the memory.
        """
        new = {key: value for key, value in common.items() if key not in self._captured}
        if new and sum(map(_size, new.values())) >= sum(map(_size, self._captured.values())):
            kept = {key: value for key, value in self._captured.items() if key in self._used}
            self._captured, self._used = kept | new, set()
            self._code = _code(self._captured)


def _size(value: Any) -> int:
    """Return the size of a large array, data frame or sparse matrix in bytes; 0 for all other values."""
    kind = type(value)
    read = _SIZES.get(kind.__module__.partition(".")[0])
    if read is None:
        return 0
    try:
        size = int(read(value))
    except Exception:  # noqa: BLE001 - for example a class of SciPy that is no matrix
        return 0
    return size if size >= LARGE_BYTES else 0


def _pandas_size(value: Any) -> int:
    usage = value.memory_usage()
    return usage if isinstance(usage, int) else usage.sum()


_SIZES: dict[str, Callable[[Any], int]] = {
    "numpy": lambda value: value.nbytes,
    "pandas": _pandas_size,
    "polars": lambda value: value.estimated_size(),
    "pyarrow": lambda value: value.nbytes,
    "scipy": lambda value: value.data.nbytes,
    "torch": lambda value: value.nbytes,
    "xarray": lambda value: value.nbytes,
}
"""The size of a value in bytes, by the library of its class."""


def _without(call: Call, numbers: dict[int, int]) -> tuple[Any, ...]:
    """Return a call without its captured arguments, and the number of the captured value for each place."""
    function, args, kwargs = call
    given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    places = {place: numbers[id(value)] for place, value in given if id(value) in numbers}
    left = [None if number in places else value for number, value in enumerate(args)]
    return function, left, {name: None if name in places else value for name, value in kwargs.items()}, places


def _code(captured: dict[int, Any]) -> Snapshot:
    """Return code that captures these values."""
    return snapshot(partial(_make_calls(), {"values": [*captured.values()]})) if captured else _plain_code()


@cache
def _plain_code() -> Snapshot:
    return snapshot(partial(_make_calls(), {"values": []}))


@cache
def _make_calls() -> Callable[..., Any]:
    """Return the function that makes a task's calls."""

    def make_calls(captured: dict[str, Any], calls: list[Any]) -> list[Any]:
        from joblib import parallel_config

        def values() -> list[Any]:
            """Return the captured values for one call.

            An executor keeps them for many tasks. So each call gets objects of its own. They share their data, which is
            read-only, as the arrays of joblib's own processes are.
            """
            import pickle

            import cloudpickle

            if "pickled" not in captured:
                buffers: list[Any] = []
                captured["pickled"] = cloudpickle.dumps(captured["values"], 5, buffer_callback=buffers.append)
                captured["buffers"] = [each.raw().toreadonly() for each in buffers]
            found: list[Any] = pickle.loads(captured["pickled"], buffers=captured["buffers"])
            return found

        results = []
        with parallel_config(backend="sequential"):
            for function, args, kwargs, places in calls:
                given, shared = [*args], values() if places else []
                for place, number in places.items():
                    if isinstance(place, str):
                        kwargs[place] = shared[number]
                    else:
                        given[place] = shared[number]
                results.append(function(*given, **kwargs))
        return results

    make_calls.__module__ = "__main__"  # so that cloudpickle sends it by value: a worker may not have the SDK
    make_calls.__qualname__ = "joblib.Parallel"
    return make_calls
