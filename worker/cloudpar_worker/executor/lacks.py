"""Whether a task failed because of what this machine lacks, so that another machine may run it."""

from collections.abc import Iterator
from traceback import walk_tb

from cloudpar_protocol.payloads import LACKS_CHARS

from .failures import bounded, line

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
    if isinstance(error, ModuleNotFoundError) and error.name:
        return bounded(f"no module named {error.name!r}", LACKS_CHARS)
    own = isinstance(error, ImportError) and bool(error.name)
    if own or (unpickling and (isinstance(error, (ImportError, AttributeError)) or _IMPORTING in _files(error))):
        return bounded(line(error), LACKS_CHARS)
    return None


def _files(error: BaseException) -> Iterator[str]:
    return (frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__))
