"""Serializes functions together with an initializer, which executors call before they call the function."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from cloudpar._serialization.footprint import Footprint, footprint
from cloudpar._serialization.task_code import Code, check_function, function_name, serialize
from cloudpar.references import Reference

REMEMBERED, REMEMBERED_BYTES = 128, 256 << 20
"""How many functions are remembered, and how many bytes of task code, in addition to the newest function. The arguments
of an initializer are often large, and without this each call of `submit` would serialize them again."""


class _Known(NamedTuple):
    """A function that is kept alive, what its pickle was made of (None: it never changes), and its task code."""

    function: Any
    made_of: Footprint | None
    code: Code


class InitializedCode:
    """Serializes functions so that each executor calls an initializer before its first call of the function.

    The initializer, its arguments and the function are in one pickle. So a global that the initializer sets is there
    for the function, although neither of them can be imported by name.

    Args:
        initializer: The function that executors call with `initargs`.
        initargs: Its arguments. They are serialized when a function is used for the first time.
    """

    def __init__(self, initializer: Callable[..., object], initargs: tuple[Any, ...]) -> None:
        self._initializer = initializer
        self._initargs = initargs
        self._lock = threading.Lock()
        self._known: dict[int, _Known] = {}

    def get(self, function: Any, *, never_changes: bool = False) -> Code:
        """Return the task code of a function, which may be a snapshot that never changes.

        Raises:
            SerializationError: The function, the initializer or its arguments cannot be pickled; the text names the
                part that is the cause.
            TooLarge: The pickle exceeds the limit of task code.
            TypeError: The object is not callable, or is an async function.
            ValueError: The workers import the function by its name, so that no initializer can be sent with it.
        """
        if isinstance(function, Reference):
            raise ValueError(  # noqa: TRY004 - the type is right, but not for this pool
                f"a pool with initializer= cannot run {function.text} by its name: give a Python function that calls it"
            )
        with self._lock:
            known = self._known.get(id(function))
            if known is not None and (known.made_of is None or known.made_of.holds()):
                return known.code
        check_function(function)
        made_of = None if never_changes else footprint(function)
        name = function_name(function)
        code = serialize(initialized(self._initializer, self._initargs, function))._replace(name=name)
        if never_changes or made_of is not None:
            self._remember(_Known(function, made_of, code))
        return code

    def _remember(self, known: _Known) -> None:
        with self._lock:
            self._known.pop(id(known.function), None)
            while self._known and not self._has_room(len(known.code.data)):
                del self._known[next(iter(self._known))]
            self._known[id(known.function)] = known

    def _has_room(self, size: int) -> bool:
        held = sum(len(each.code.data) for each in self._known.values())
        return len(self._known) < REMEMBERED and held + size <= REMEMBERED_BYTES


def initialized(
    initializer: Callable[..., object], initargs: tuple[Any, ...], function: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that calls the initializer before its first call of `function`.

    An executor unpickles a function once and keeps it, so the first call of the unpickled function is the first one in
    its executor. If the initializer raises, the next call tries again.
    """
    is_done = False

    # cloudpickle pickles a nested function by value, so workers of any release can run it.
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_done
        if not is_done:
            module = getattr(initializer, "__globals__", {})
            before = dict(module)
            initializer(*initargs)
            # If executors import the initializer's module, a lambda of this module has globals of its own. Without this
            # it would not see what the initializer has set.
            own = getattr(function, "__globals__", {})
            if own is not module and getattr(function, "__module__", None) == getattr(initializer, "__module__", ""):
                own.update({name: new for name, new in module.items() if before.get(name, before) is not new})
            is_done = True
        return function(*args, **kwargs)

    call.__qualname__ = f"{function_name(function)} with its initializer"  # for errors of the pickling
    return call
