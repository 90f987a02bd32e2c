"""Prepares exceptions of task code for sending: makes their pickle, their text and their traceback."""

import pickle
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from cloudpar_protocol import errors as protocol_errors
from cloudpar_protocol.limits import BLOB_BYTES, ERROR_TEXT_CHARS

from . import by_value, rebuilding

_CUT = "\n... {} characters are left out ...\n"


def serialize(value: Any) -> bytes:
    """Pickle a value by plain pickle or, if that fails, by `by_value`.

    Plain pickle fails, for example, for a class that it cannot find by name, such as a class of `__main__`.

    Raises:
        BaseException: What pickling raised.
    """
    try:
        return pickle.dumps(value, 5)
    except Exception:
        return by_value.dumps(value)


def bounded(text: str, limit: int = ERROR_TEXT_CHARS) -> str:
    """Cut a text in the middle to at most `limit` characters, and escape its lone surrogates."""
    text = plain(text)
    if len(text) <= limit:
        return text
    note = _CUT.format(len(text) - limit + len(_CUT) + 10)
    keep = limit - len(note)
    head = keep // 2
    return text[:head] + note + text[len(text) - (keep - head) :]


def plain(text: str) -> str:
    r"""Make a text that UTF-8 can encode: a plain str with escapes for lone surrogates, such as those of file names.

    >>> plain("name \udcff")
    'name \\udcff'
    """
    return str.encode(text, errors="backslashreplace").decode()  # a derived class may override `encode`


def portable(error: BaseException) -> tuple[bytes | None, str]:
    """Return the pickle of an exception, and ""; or None, and the reason why the exception cannot travel.

    An exception cannot travel if pickling fails, if the pickle is too large, or if unpickling does not restore an
    exception. The reason says what to do.
    """
    reasons = []
    for dumps in rebuilding.dumps, serialize:  # the second way is for classes of C extensions
        verb = "pickle"
        try:
            data = dumps(error)
            if len(data) > BLOB_BYTES:
                return None, f"its pickle takes {len(data)} bytes, over the limit of {BLOB_BYTES}: hold less in it"
            verb = "unpickle"
            again = pickle.loads(data)
            if isinstance(again, BaseException):
                return _noted(data, error, again), ""
            reasons.append(f"it unpickles as {type_name(type(again))}: correct its __reduce__")
        except BaseException as reason:
            fix = "pass all arguments to super().__init__" if verb == "unpickle" else "hold plain data in it"
            reasons.append(f"{_culprit(error, verb)} does not {verb} ({line(reason)}): give it __reduce__, or {fix}")
    return None, reasons[0]


def _noted(data: bytes, error: BaseException, again: BaseException) -> bytes:
    """Return the pickle of an exception, completed by the notes that the exception's own pickling code left out.

    `again` is the exception that `data` restores. If the notes cannot be added, the pickle stays as it is.
    """
    with suppress(BaseException):  # code of the exception may raise; it then travels without the notes
        notes = _notes(error)
        if notes and notes != _notes(again):
            noted = rebuilding.noted(data, notes)
            if len(noted) <= BLOB_BYTES and _notes(pickle.loads(noted)) == notes:
                return noted
    return data


def _notes(error: BaseException) -> list[str]:
    return [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]


def _culprit(error: BaseException, verb: str) -> str:
    """Return a phrase that names the part of an exception that cannot be pickled; "it" if the part is unknown.

    `verb` says what failed: "pickle" or "unpickle". With "unpickle" the part is always unknown.
    """
    try:
        parts = rebuilding.state(error) if verb == "pickle" else {}
    except BaseException:
        return "it"
    for name, value in parts.items():
        try:
            rebuilding.dumps(value)
        except BaseException:
            return f"its attribute {name!r}" if type(name) is str else "it"
    return "it"


def line(error: BaseException) -> str:
    """Return the name of an exception's type and its text, "TypeName: text", as at the end of a traceback."""
    try:
        text = plain(str(error))
    except BaseException as second:
        text = f"<its text cannot be read: {_qualified_name(type(second))}>"
    name = _qualified_name(type(error))
    return bounded(f"{name}: {text}" if text else name)


def traceback_of(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception, even if its class overrides the attribute."""
    found: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)
    return found


def missing_module(error: BaseException) -> str:
    """Return the module that an ImportError names; "" if it names none, or if the exception is no ImportError.

    A `name` that is not a plain str counts as none: task code may put any object there, and the object's code may
    raise.
    """
    with suppress(BaseException):
        if isinstance(error, ImportError) and type(error.name) is str:
            return error.name
    return ""


def remote_traceback(error: BaseException, own: TracebackType | None) -> str:
    """Format a traceback without the executor's own frames; `own` is the last of these frames.

    If `own` is None, no frames of this exception are shown. If the exception cannot be formatted, the result is its
    `line`.
    """
    try:
        formatted = traceback.TracebackException(type(error), error, own.tb_next if own else None, compact=True)
        return bounded("".join(formatted.format()))
    except BaseException:
        return line(error)


def is_among(error: BaseException, names: Sequence[str]) -> bool:
    """Whether an exception's class, or a base of its class, is among `names`, which have the form of `_class_name`.

    If `names` is empty, every class derived from Exception counts. SystemExit and KeyboardInterrupt never count, even
    if they are named, so a task that ends by sys.exit or Ctrl-C is not retried.
    """
    kinds = type.mro(type(error))
    return Exception in kinds and (not names or any(_class_name(kind) in names for kind in kinds))


def _class_name(kind: type) -> str:
    """Return the module and the name of a class; only the name if the class is built in.

    The name contains no enclosing classes and functions, because their names are lost if the class is pickled by value.
    """
    module, name = _module(kind), type.__getattribute__(kind, "__name__")
    if getattr(protocol_errors, name, None) is kind:  # `cloudpar.errors` changes the module of these classes
        module = protocol_errors.__name__
    return name if module == "builtins" else f"{module}.{name}"


def _qualified_name(kind: type) -> str:
    name: str = type.__getattribute__(kind, "__qualname__")  # a metaclass may override the attribute
    return plain(name)


def _module(kind: type) -> str:
    module = type.__getattribute__(kind, "__module__")
    return module if type(module) is str else "?"


def with_attempts(trace: str, failed: Sequence[str]) -> str:
    """Return a text about all attempts: the exception of each earlier attempt in one line, then the last traceback."""
    if not failed:
        return trace
    before = "".join(f"Attempt {number} raised {text}\n" for number, text in enumerate(failed, 1))
    return bounded(f"{before}Attempt {len(failed) + 1}, the last one:\n{trace}")


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, unless it has the note already or accepts none."""
    with suppress(BaseException):  # its notes may be any object
        if note not in getattr(error, "__notes__", ()):
            BaseException.add_note(error, note)


def type_name(kind: type) -> str:
    """Return the full name of a type."""
    return f"{_module(kind)}.{_qualified_name(kind)}"


def unpicklable(value_type: type, error: BaseException) -> str:
    """Return the message about a result that cannot be pickled."""
    return bounded(
        f"the result, of type {type_name(value_type)}, does not pickle ({line(error)}): return plain data (numbers, "
        "strings, lists, arrays) made from it, or give its class __reduce__ or __getstate__"
    )
