"""Objects to bytes: by cloudpickle, so that lambdas, closures and whatever `__main__` defines can travel."""

import io
import pickle
from typing import IO, Any

import cloudpickle

from .diagnosis import culprit
from .errors import SerializationError
from .local_modules import LOCAL_MODULES

PROTOCOL = 5
"""The same for all supported Python versions."""

SCALARS = frozenset({int, float, str, bytes, bool, type(None), complex})
"""Exactly these need no look at what they are made of."""


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes many objects to one file, each on its own: cheaper than a pickler an object."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, protocol=PROTOCOL)

    def append(self, value: object) -> None:
        """Add one object, which loads without those before it."""
        pickle.Pickler.dump(self, value)
        self.clear_memo()


def dumps(value: object, what: str) -> bytes:
    """Serialize one object.

    Args:
        value: Anything.
        what: What it is, for the error message, such as "args[0]".

    Raises:
        SerializationError: It does not pickle; the text names the part that does not, and the mend.
    """
    if type(value) in SCALARS:
        return pickle.dumps(value, PROTOCOL)
    try:
        with LOCAL_MODULES.by_value():
            return _dumps(value)
    except Exception as error:
        raise refusal(error, value, what) from error


def _dumps(value: object) -> bytes:
    file = io.BytesIO()
    Pickler(file).append(value)
    return file.getvalue()


def refusal(error: Exception, value: object, what: str) -> SerializationError:
    """The error that says which part of a value does not pickle, and what to do about it."""
    if isinstance(error, SerializationError):
        return error
    with LOCAL_MODULES.by_value():
        name = culprit(value, what, _dumps)
    if isinstance(error, RecursionError):
        reason, mend = "it is nested too deeply", "send it in another form, such as a list of its nodes"
    else:
        reason = str(error) or type(error).__name__
        mend = "leave it out, or make it inside the task (open files, locks, connections and generators stay here)"
    return SerializationError(f"cannot pickle {name}: {reason}; {mend}")


def loads(data: bytes) -> Any:
    """What `dumps` made of an object, here or at a worker."""
    return pickle.loads(data)
