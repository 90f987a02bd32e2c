"""Decides whether a task may have failed because this machine lacks something. Then another machine may run it."""

from collections.abc import Iterator
from traceback import walk_tb

from cloudpar_protocol.payloads import LACKS_CHARS

from .failures import bounded, line, missing_module, traceback_of

_IMPORTING = "<frozen importlib._bootstrap>"
"""The file name of the frames of an import statement."""


def lack(error: BaseException, *, unpickling: bool) -> str | None:
    """Name what this machine lacks, if a task may have failed because of it; otherwise return None.

    An ImportError that names a module always counts as such a failure. Three further exceptions count only if
    unpickling raised them: any other ImportError, an AttributeError (a module here may be of an older version without a
    needed name), and an exception that was raised during an import.

    Args:
        error: The exception that the task raised, or that unpickling of its code or data raised.
        unpickling: Whether the exception was raised while the code or the data were unpickled.
    """
    name, kinds = missing_module(error), type.mro(type(error))
    if name and ModuleNotFoundError in kinds:
        return bounded(f"no module named {name!r}", LACKS_CHARS)
    if name or (unpickling and (ImportError in kinds or AttributeError in kinds or _IMPORTING in _files(error))):
        return bounded(line(error), LACKS_CHARS)
    return None


def _files(error: BaseException) -> Iterator[str]:
    return (frame.f_code.co_filename for frame, _ in walk_tb(traceback_of(error)))
