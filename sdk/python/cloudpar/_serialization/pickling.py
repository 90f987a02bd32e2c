"""Pickles objects by cloudpickle, so that lambdas, closures and everything that `__main__` defines can be sent."""

import hashlib
import io
import pickle
import sys
from types import FunctionType, ModuleType
from typing import IO, Any, NamedTuple

import cloudpickle
from cloudpickle.cloudpickle import _should_pickle_by_reference

from cloudpar.errors import SerializationError
from cloudpar_protocol import decorated, function_globals, open_files
from cloudpar_protocol.large_buffers import Marker

from .diagnosis import Call, advice_for, culprit
from .local_modules import LOCAL_MODULES
from .project import imports, remote

PROTOCOL = 5
"""The pickle protocol, which all supported Python versions know."""

SCALARS = frozenset({int, float, str, bytes, bool, type(None), complex})
"""Types whose values need no search for classes and functions inside them."""

SHARED_PARTS = 256
"""How many classes and functions one `DataNeeds` shares, so that they are sent only once per package. Further classes
and functions are sent with each task that refers to them.
"""

_USUAL_KINDS = 1_000


class DataNeeds:
    """The modules, classes and functions that task data needs besides its own bytes.

    Attributes:
        modules: The modules that the pickles name, and the modules that functions in the pickles import when they run.
        parts: The pickles of classes and functions that the task data refers to, by key.
    """

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.parts: dict[str, bytes] = {}
        part_of = remote.holder().part_of
        self.known: dict[int, Any] = {id(part_of): NotImplemented}
        """For the id of each object that is sent only once per package: how a pickle refers to the object."""
        self._alive: list[object] = [part_of]
        """Keeps the objects of `known` alive, so that no other object gets one of their ids."""

    def share(self, thing: object) -> Any:
        """Return how pickles refer to a class or function that is sent only once; None if each pickle contains it."""
        if len(self._alive) > SHARED_PARTS:
            return None
        part = self.part(thing)
        if part is None:
            return None
        self.parts[part.key] = part.data
        self.modules |= part.modules
        self._alive.append(thing)
        reduced = self.known[id(thing)] = remote.holder().part_of, (part.key,)
        return reduced

    def part(self, thing: object) -> "Part | None":
        """Return a class or function as a part that is sent once; None if each pickle must contain it."""
        return Part.of(thing)


class Part(NamedTuple):
    """The pickle of a class or function that task data refers to, the modules that it needs, and its key."""

    key: str
    data: bytes
    modules: frozenset[str]

    @classmethod
    def of(cls, thing: object) -> "Part":
        """Serialize a class or function as it is now."""
        modules = set[str]()
        data = _dumps(thing, modules)
        return cls(hashlib.sha256(data).hexdigest()[:32], data, frozenset(modules))


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes several objects to one file, each as a separate pickle. This costs less than a pickler for each object.

    Large arrays in the pickles are marked, so that executors can map them.

    Args:
        file: Receives the pickles.
        modules: Receives the names of the modules that the pickles need.
        needs: Receives the classes and functions that many objects refer to. If None, each pickle contains copies of
            the classes and functions that it refers to.
    """

    def __init__(self, file: IO[bytes], modules: set[str] | None = None, needs: DataNeeds | None = None) -> None:
        self._target = file
        self._marker = Marker(file)
        super().__init__(self._marker, protocol=PROTOCOL)
        self._modules = set[str]() if modules is None else modules
        self._needs = needs
        self._known: dict[int, Any] = {} if needs is None else needs.known
        self._usual: set[type] = set()
        self._there: set[str] = set()

    def append(self, value: object) -> None:
        """Write one object. Its pickle does not depend on earlier pickles."""
        if type(value) in SCALARS:
            self._target.write(pickle.dumps(value, PROTOCOL))
            return
        start = self._target.tell()
        try:
            pickle.Pickler.dump(self, value)
            self._marker.end(start)
        except BaseException:
            self._marker.forget()
            raise
        finally:
            self.clear_memo()

    def reducer_override(self, thing: Any) -> Any:
        """Return how to pickle an object; see `pickle.Pickler`."""
        kind = type(thing)
        if kind in self._usual:
            return NotImplemented
        known = self._known.get(id(thing))
        if known is not None:
            return known
        reduced = open_files.reduce(thing) or decorated.reduce(thing, _is_found)
        if reduced is not None:
            return reduced
        if kind is FunctionType or issubclass(kind, type):
            return self._reduce_code(thing)
        if kind is ModuleType or kind is decorated.LRU_CACHE:
            self._is_there(thing.__name__ if kind is ModuleType else thing.__module__)
        else:
            self._modules.add(str(kind.__module__))
            if len(self._usual) < _USUAL_KINDS:
                self._usual.add(kind)
        return NotImplemented

    def _reduce_code(self, thing: Any) -> Any:
        if self._has_name(thing):
            return NotImplemented
        if self._needs is not None and _is_lasting(thing):
            shared = self._needs.share(thing)
            if shared is not None:
                return shared
        if type(thing) is FunctionType:
            self._modules |= imports.of_code(thing.__code__, thing.__module__)
            return function_globals.complete(super().reducer_override(thing), thing)
        return super().reducer_override(thing)

    def _has_name(self, thing: Any) -> bool:
        """Whether an executor finds a function or class by name."""
        if not _should_pickle_by_reference(thing):
            return False
        return self._is_there(str(thing.__module__))

    def _is_there(self, module: str) -> bool:
        """Whether executors may find a module by name; if so, record that the pickle needs the module."""
        if module not in self._there:
            if LOCAL_MODULES.is_deleted(module):
                return False  # from now on cloudpickle pickles the module's contents by value
            self._there.add(module)
            self._modules.add(module)
        return True


def _is_found(thing: Any) -> bool:
    """Whether an executor finds a decorated function by its module and name."""
    if type(thing) is FunctionType:
        return bool(_should_pickle_by_reference(thing))
    return thing.__module__ not in LOCAL_MODULES.strays() and decorated.has_name(thing)


def _is_lasting(thing: Any) -> bool:
    """Whether many tasks probably refer to an object: it is a class, or a function that is a global of `__main__`."""
    return isinstance(thing, type) or vars(sys.modules["__main__"]).get(thing.__qualname__) is thing


class Pickled(NamedTuple):
    """A pickle and the names of the modules that it needs."""

    data: bytes
    modules: frozenset[str]


def pickled(value: object, what: str, needs: DataNeeds | None = None) -> Pickled:
    """Serialize one object.

    Args:
        value: The object. If it is a `Call`, its args and kwargs are serialized.
        what: A name of the object for the error message, such as "the function".
        needs: Receives the classes and functions that are sent beside the pickle. None if the pickle must contain all
            classes and functions.

    Raises:
        SerializationError: The object cannot be pickled. The text names the part that cannot be pickled, and says what
            to do.
    """
    if type(value) in SCALARS:
        return Pickled(pickle.dumps(value, PROTOCOL), frozenset())
    modules = set[str]() if needs is None else needs.modules
    try:
        with LOCAL_MODULES.by_value():
            data = _dumps((value.args, value.kwargs) if isinstance(value, Call) else value, modules, needs)
    except Exception as error:
        raise refusal(error, value, what) from error
    return Pickled(data, frozenset(modules))


def dumps(value: object, what: str) -> bytes:
    """Serialize one object; return only the bytes of `pickled`. Raises like `pickled`."""
    return pickled(value, what).data


def _dumps(value: object, modules: set[str] | None = None, needs: DataNeeds | None = None) -> bytes:
    file = io.BytesIO()
    Pickler(file, modules, needs).append(value)
    return file.getvalue()


def refusal(error: Exception, value: object, what: str) -> SerializationError:
    """Return the error for an object that cannot be pickled.

    The error names the part that is the cause, and what to do.

    If `error` is a SerializationError, return it unchanged.
    """
    if isinstance(error, SerializationError):
        return error
    with LOCAL_MODULES.by_value():
        name, part = culprit(value, what, _dumps)
    if isinstance(error, RecursionError):
        reason, advice = "it is nested too deeply", "send it in another form, such as a list of its nodes"
    else:
        reason, advice = str(error) or type(error).__name__, advice_for(part)
    return SerializationError(f"cannot pickle {name}: {reason}; {advice}")
