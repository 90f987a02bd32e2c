"""Whether a task failed because of what this machine lacks, so that another machine may run it."""

from collections.abc import Iterator
from traceback import walk_tb

from cloudpar_protocol.payloads import LACKS_CHARS

from .failures import bounded, line, missing_module, traceback_of

_IMPORTING = "<frozen importlib._bootstrap>"
"""What a frame of an import statement has as its file."""


def lack(error: BaseException, *, unpickling: bool) -> str | None:
    """What this machine lacks, if that may be why a task failed; None: the task itself is to blame.

    Unpickling fails where a module is missing, does not load, or is of an older release without what is looked up in
    it. A task that runs lacks a module only where its own import of it failed, and it did not handle that itself.

    Args:
        error: What the task, or the unpickling of its code or data, raised.
        unpickling: Its code had not been called.
    """
    name, kinds = missing_module(error), type.mro(type(error))
    if name and ModuleNotFoundError in kinds:
        return bounded(f"no module named {name!r}", LACKS_CHARS)
    if name or (unpickling and (ImportError in kinds or AttributeError in kinds or _IMPORTING in _files(error))):
        return bounded(line(error), LACKS_CHARS)
    return None


def _files(error: BaseException) -> Iterator[str]:
    return (frame.f_code.co_filename for frame, _ in walk_tb(traceback_of(error)))
