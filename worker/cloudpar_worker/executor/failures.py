"""An exception of task code, made ready to travel: its pickle, its line, its traceback."""

import pickle
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from cloudpar_protocol.limits import BLOB_BYTES, ERROR_TEXT_CHARS

from . import by_value, rebuilding

_CUT = "\n... {} characters are left out ...\n"


def serialize(value: Any) -> bytes:
    """Pickle a value; what plain pickle cannot find by name (classes of the client's __main__) goes by value."""
    try:
        return pickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 - whatever it was, cloudpickle decides
        return by_value.dumps(value)


def bounded(text: str, limit: int = ERROR_TEXT_CHARS) -> str:
    """A text of at most `limit` characters that can travel, cut in the middle."""
    text = plain(text)
    if len(text) <= limit:
        return text
    note = _CUT.format(len(text) - limit + len(_CUT) + 10)
    keep = limit - len(note)
    head = keep // 2
    return text[:head] + note + text[len(text) - (keep - head) :]


def plain(text: str) -> str:
    r"""A text that can travel: a plain str, whose lone surrogates (of file names, for example) are written as escapes.

    >>> plain("name \udcff")
    'name \\udcff'
    """
    return str.encode(text, errors="backslashreplace").decode()  # not what a derived class makes of `encode`


def portable(error: BaseException) -> tuple[bytes | None, str]:
    """The exception's pickle; or None and why, with the mend, when it does not survive the round trip."""
    reasons = []
    for dumps in rebuilding.dumps, serialize:  # the second for classes of C extensions that only they can make
        verb = "pickle"
        try:
            data = dumps(error)
            if len(data) > BLOB_BYTES:
                return None, f"its pickle takes {len(data)} bytes, over the limit of {BLOB_BYTES}: hold less in it"
            verb = "unpickle"
            again = pickle.loads(data)
            if isinstance(again, BaseException):
                return _noted(data, error, again), ""
            reasons.append(f"it unpickles as a {type_name(type(again))}: correct its __reduce__")
        except BaseException as reason:  # noqa: BLE001 - an exception's own code may raise anything, SystemExit too
            mend = "pass all arguments to super().__init__" if verb == "unpickle" else "hold plain data in it"
            reasons.append(f"{_culprit(error, verb)} does not {verb} ({line(reason)}): give it __reduce__, or {mend}")
    return None, reasons[0]


def _noted(data: bytes, error: BaseException, again: BaseException) -> bytes:
    """The pickle of an exception that comes back as `again`, with the notes that it may have lost by its own way."""
    with suppress(BaseException):  # the same: then it goes without
        notes = _notes(error)
        if notes and notes != _notes(again):
            noted = rebuilding.noted(data, notes)
            if len(noted) <= BLOB_BYTES and _notes(pickle.loads(noted)) == notes:
                return noted
    return data


def _notes(error: BaseException) -> list[str]:
    return [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]


def _culprit(error: BaseException, verb: str) -> str:
    """Which part of an exception does not pickle."""
    try:
        parts = rebuilding.state(error) if verb == "pickle" else {}
    except BaseException:  # noqa: BLE001 - the same
        return "it"
    for name, value in parts.items():
        try:
            rebuilding.dumps(value)
        except BaseException:  # noqa: BLE001 - the same
            return f"its attribute {name!r}" if type(name) is str else "it"
    return "it"


def line(error: BaseException) -> str:
    """TypeName: text."""
    try:
        text = plain(str(error))
    except BaseException as second:  # noqa: BLE001 - the same
        text = f"<its text cannot be had: {_qualified_name(type(second))}>"
    name = _qualified_name(type(error))
    return bounded(f"{name}: {text}" if text else name)


def traceback_of(error: BaseException) -> TracebackType | None:
    """The traceback of an exception, whatever its class makes of the attribute."""
    found: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)
    return found


def missing_module(error: BaseException) -> str:
    """The module that an ImportError names; "" if it names none.

    Task code may put anything there, whose own code may raise; only a plain text is taken.
    """
    with suppress(BaseException):
        if isinstance(error, ImportError) and type(error.name) is str:
            return error.name
    return ""


def remote_traceback(error: BaseException, own: TracebackType | None) -> str:
    """The formatted traceback without the executor's own frame `own`."""
    try:
        formatted = traceback.TracebackException(type(error), error, own.tb_next if own else None, compact=True)
        return bounded("".join(formatted.format()))
    except BaseException:  # noqa: BLE001 - the same
        return line(error)


def is_among(error: BaseException, names: Sequence[str]) -> bool:
    """Whether an exception is of one of these classes, or of one derived from them.

    With no names, any Exception is: neither sys.exit nor Ctrl-C of a task is a reason to try again.
    """
    kinds = type.mro(type(error))
    return Exception in kinds and (not names or any(_class_name(kind) in names for kind in kinds))


def _class_name(kind: type) -> str:
    """Without what it is nested in: that is lost where a class travels by value."""
    module, name = _module(kind), type.__getattribute__(kind, "__name__")
    return name if module == "builtins" else f"{module}.{name}"


def _qualified_name(kind: type) -> str:
    name: str = type.__getattribute__(kind, "__qualname__")  # not what its metaclass makes of it
    return plain(name)


def _module(kind: type) -> str:
    module = type.__getattribute__(kind, "__module__")
    return module if type(module) is str else "?"


def with_attempts(trace: str, failed: Sequence[str]) -> str:
    """The traceback of a task's last attempt, after a line for each that failed before it."""
    if not failed:
        return trace
    before = "".join(f"Attempt {number} raised {text}\n" for number, text in enumerate(failed, 1))
    return bounded(f"{before}Attempt {len(failed) + 1}, the last one:\n{trace}")


def add_note(error: BaseException, note: str) -> None:
    """Add a note that an exception has not yet, unless it takes none."""
    with suppress(BaseException):  # its notes may be anything
        if note not in getattr(error, "__notes__", ()):
            BaseException.add_note(error, note)


def type_name(kind: type) -> str:
    """A type as people look for it."""
    return f"{_module(kind)}.{_qualified_name(kind)}"


def unpicklable(value_type: type, error: BaseException) -> str:
    """The message about a result that does not pickle."""
    return bounded(
        f"the result, a {type_name(value_type)}, does not pickle ({line(error)}): return plain data (numbers, strings, "
        "lists, arrays) made from it, or give its class __reduce__ or __getstate__"
    )
