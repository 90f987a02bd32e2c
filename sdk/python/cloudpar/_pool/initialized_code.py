"""Serializes functions together with an initializer, which executors call before they call the function."""

from collections.abc import Callable
from typing import Any

from cloudpar._serialization.footprint import Footprint, footprint
from cloudpar._serialization.task_code import Code, check_function, function_name, serialize
from cloudpar.references import Reference
from cloudpar.snapshots import Snapshot

REMEMBERED = 16
"""How many functions are remembered with their initializer. The arguments of an initializer are often large, and
without this each call of `submit` would serialize them again."""


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
        self._known: dict[int, tuple[Footprint | Snapshot, Code]] = {}

    def get(self, function: Any) -> Code:
        """Return the task code of a function.

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
        made_of, code = self._known.get(id(function), (None, None))
        if code is not None and (isinstance(made_of, Snapshot) or (made_of is not None and made_of.holds())):
            return code
        check_function(function)
        made_of = function if isinstance(function, Snapshot) else footprint(function)
        name = function_name(function)
        code = serialize(initialized(self._initializer, self._initargs, function))._replace(name=name)
        if made_of is not None:
            if len(self._known) >= REMEMBERED:
                self._known.pop(next(iter(self._known)), None)
            self._known[id(function)] = made_of, code
        return code


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
