"""Makes tracebacks that show the user's program, without frames of this package and with source lines of notebooks."""

import linecache
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

import cloudpickle

import cloudpar_protocol
from cloudpar.errors import CloudparError, SerializationError

_FRAME: Final = re.compile(r'(?P<indent>[ |]*)File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
_INTERNAL: Final = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(__file__).parents[1],
        Path(cloudpar_protocol.__file__).parent,
        Path(cloudpickle.__file__).parent,
        Path(os.__file__).parent,
    )
)
_INSTALLED: Final = ("site-packages", "dist-packages")


class ShortTracebacks:
    """A context for calls of the pool. A CloudparError that leaves the context loses its frames inside the context.

    The error keeps these frames if some of them are the user's own code, such as a generator that `map` reads.
    """

    def __enter__(self) -> None:
        """Do nothing: only leaving the context matters."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, CloudparError):
            shorten(error)


def shorten(error: CloudparError) -> None:
    """Remove the traceback of an error if it shows only this package and its libraries, and no code of the user.

    In any case, cut the traceback of the error's cause, so that it starts at the user's first frame. If the cause has
    no frame of the user, remove its traceback. If in addition the error is a SerializationError, remove the cause
    itself.
    """
    if _users(error.__traceback__) is None:
        error.__traceback__ = None
    cause = error.__cause__
    if cause is None:
        return
    cause.__traceback__ = _users(cause.__traceback__)
    if cause.__traceback__ is None and isinstance(error, SerializationError):
        error.__cause__ = None  # the error's text quotes the cause, and __context__ keeps it
        error.__suppress_context__ = True


def _users(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that starts at the user's first frame; None if there is no such frame."""
    while trace is not None and _is_internal(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_internal(file: str) -> bool:
    if file.startswith("<frozen "):
        return True
    folder = next((each for each in _INTERNAL if file.startswith(each)), None)
    return folder is not None and not any(part in _INSTALLED for part in Path(file[len(folder) :]).parts)


def with_source(text: str) -> str:
    """Add to a remote traceback source lines that only this process has, for example those of notebook cells.

    The executor prints source lines for the files that it finds. This function adds the missing source lines, found by
    the file name and line number of each frame.
    """
    lines = text.splitlines()
    return "\n".join(_completed(lines))


def _completed(lines: list[str]) -> Iterator[str]:
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        yield line
        frame = _FRAME.match(line)
        if frame is None or following.startswith(f"{frame['indent']}  "):
            continue
        source = linecache.getline(frame["file"], int(frame["line"])).strip()
        if source:
            yield f"{frame['indent']}  {source}"
