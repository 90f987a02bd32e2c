"""Exceptions with constructors of their own travel whole, or the reason travels."""

import io
import pickle
import subprocess
import sys
import threading
import urllib.error
from email.message import Message
from typing import Any, Self

import pytest

from cloudpar_protocol.limits import BLOB_BYTES
from cloudpar_worker.executor.failures import portable


class Keyword(Exception):
    def __init__(self, code: int, *, extra: str) -> None:
        super().__init__(f"code {code}")
        self.code, self.extra = code, extra


class Partial(ValueError):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)
        self.second = second


class Wrapping(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(f"wrapped {text}")


class Slotted(Exception):
    __slots__ = ("code", "never")

    def __init__(self, text: str, code: int | None = 0) -> None:
        super().__init__(text)
        self.code = code


class Disk(OSError):
    def __init__(self, path: str, *, disk: str) -> None:
        super().__init__(28, "disk full", path)
        self.disk = disk


class Both(ValueError, OSError):
    def __init__(self, *, code: int) -> None:
        OSError.__init__(self, code, "both")


class OwnNew(Exception):
    def __new__(cls, *, code: int) -> Self:
        return super().__new__(cls, code)

    def __init__(self, *, code: int) -> None:
        self.code = code


class Leaving(SystemExit):
    def __init__(self, *, status: int) -> None:
        super().__init__(status)


class Forgetful(Exception):
    """Unpickling makes it from its arguments, as with exceptions of urllib3."""

    def __reduce__(self) -> Any:
        return type(self), self.args


class Fixed(Forgetful):
    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


class Hiding(Forgetful):
    @property
    def __notes__(self) -> Any:  # type: ignore[override]
        raise SystemExit


class Stateful(Keyword):
    def __setstate__(self, state: Any) -> None:
        raise TypeError("not this state")


def round_trip(error: BaseException) -> Any:
    data, reason = portable(error)
    assert (data is not None, reason) == (True, "")
    assert data is not None
    assert b"cloudpar_worker" not in data
    again = pickle.loads(data)
    assert type(again) is type(error)
    assert again.args == error.args
    assert str(again) == str(error)
    return again


@pytest.mark.parametrize(
    ("error", "attributes"),
    [
        (Keyword(3, extra="more"), {"code": 3, "extra": "more"}),
        (Stateful(3, extra="more"), {"code": 3, "extra": "more"}),
        (Partial("a", "b"), {"second": "b"}),
        (Wrapping("text"), {}),
        (Slotted("text", 5), {"code": 5}),
        (Slotted("text", None), {"code": None}),
        (Disk("/d", disk="sda"), {"errno": 28, "strerror": "disk full", "filename": "/d", "disk": "sda"}),
        (Both(code=4), {"errno": 4, "strerror": "both"}),
        (OwnNew(code=7), {"code": 7}),
        (Leaving(status=9), {"code": 9}),
        (OSError(2, "no", "f"), {"errno": 2, "filename": "f"}),
        (UnicodeDecodeError("utf8", b"a", 0, 1, "why"), {"start": 0, "reason": "why"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_exception_with_an_unusual_constructor_comes_back_whole(
    error: BaseException, attributes: dict[str, Any]
) -> None:
    error.add_note("look here")
    again = round_trip(error)
    assert {name: getattr(again, name) for name in attributes} == attributes
    assert again.__notes__ == ["look here"]
    assert not hasattr(again, "never")


def test_notes_survive_an_exceptions_own_way_of_pickling() -> None:
    error = Forgetful("text", 5)
    for note in "of the task", "of the worker":
        error.add_note(note)
    assert round_trip(error).__notes__ == ["of the task", "of the worker"]


@pytest.mark.parametrize("notes", [None, 7, [7], ["x" * BLOB_BYTES]], ids=["none", "number", "numbers", "size"])
def test_an_exception_travels_without_notes_that_cannot(notes: Any) -> None:
    error = Forgetful("text")
    error.__notes__ = notes
    assert not hasattr(round_trip(error), "__notes__")


@pytest.mark.parametrize("error", [Fixed("text"), Hiding("text")], ids=lambda value: type(value).__name__)
def test_an_exception_that_rejects_or_hides_notes_travels(error: BaseException) -> None:
    error.__dict__["__notes__"] = ["look here"]
    assert "__notes__" not in vars(round_trip(error))


def test_a_class_by_value_is_the_same_class_again() -> None:
    class Local(Exception):
        def __init__(self, code: int, *, extra: str) -> None:
            super().__init__(f"code {code}")
            self.code, self.extra = code, extra

    again = round_trip(Local(1, extra="x"))
    with pytest.raises(Local):
        raise again
    assert (again.code, again.extra) == (1, "x")


def test_exceptions_inside_exceptions_come_back_whole() -> None:
    inner = Keyword(1, extra="x")
    data, _ = portable(ExceptionGroup("several", [ValueError(2), inner]))
    assert data is not None
    group = pickle.loads(data)
    assert isinstance(group, ExceptionGroup)
    assert (group.message, vars(group.exceptions[1])) == ("several", {"code": 1, "extra": "x"})
    assert vars(round_trip(holding(inner)).held) == vars(inner)


def test_a_client_without_the_workers_code_unpickles_an_exception() -> None:
    error = urllib.error.HTTPError("http://nowhere", 404, "not found", Message(), io.BytesIO(b"page"))
    data, reason = portable(error)
    assert (data is not None, reason) == (True, "")
    script = (
        "import pickle, sys; sys.modules['cloudpar_worker'] = None; e = pickle.load(sys.stdin.buffer); "
        "print(type(e).__name__, e.code, e.reason, e.url, e.read(), e)"
    )
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "HTTPError 404 not found http://nowhere b'page' HTTP Error 404: not found"


class Broken(Exception):
    def __reduce__(self) -> Any:
        return Keyword, (1,)


class Disguised(Exception):
    def __reduce__(self) -> Any:
        return str, ("text",)


def holding(what: object) -> BaseException:
    error = ValueError("text")
    error.held = what  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "texts"),
    [
        (Broken(), ["does not unpickle", "'extra'", "give it __reduce__, or pass all arguments to super().__init__"]),
        (Disguised(), ["unpickles as builtins.str", "__reduce__"]),
        (Partial("a", threading.Lock()), ["its attribute 'second' does not pickle", "_thread.lock", "plain data"]),  # type: ignore[arg-type]
        (holding(threading.Lock()), ["its attribute 'held' does not pickle"]),
        (holding(bytes(BLOB_BYTES)), [f"over the limit of {BLOB_BYTES}"]),
    ],
    ids=["unpickle", "disguised", "attribute", "built-in", "size"],
)
def test_an_exception_that_cannot_travel_says_why(error: BaseException, texts: list[str]) -> None:
    data, reason = portable(error)
    assert data is None
    for text in texts:
        assert text in reason
