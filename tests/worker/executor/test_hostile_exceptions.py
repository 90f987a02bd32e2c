"""Exceptions whose own code raises, or whose texts cannot be encoded, are results and end no executor."""

import threading
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from cloudpar_worker.executor.failures import portable
from worker.scripted_master import ScriptedMaster
from worker.tasks import run


def refuse(*_: object) -> NoReturn:
    raise SystemExit("hostile")


def text_with_a_lone_surrogate(_number: int) -> None:
    raise ValueError("cannot read name \udcff")


def name_without_repr(_number: int) -> None:
    own_code = refuse

    class Name:
        __repr__ = own_code

    raise ModuleNotFoundError("no such module", name=Name())  # type: ignore[arg-type]


def name_without_a_truth(_number: int) -> None:
    own_code = refuse

    class Name:
        __bool__ = own_code

    raise ImportError("no such name", name=Name())  # type: ignore[arg-type]


def traceback_that_raises(_number: int) -> None:
    own_code = refuse

    class Hidden(ValueError):
        __traceback__ = property(own_code)

    raise Hidden("no traceback")


def class_that_raises(_number: int) -> None:
    own_code = refuse

    class Unnamed(ValueError):
        __class__ = property(own_code)

    raise Unnamed("no class")


def attributes_of_its_class_that_raise(_number: int) -> None:
    own_code = refuse

    class Meta(type):
        __getattribute__ = own_code

    class Closed(ValueError, metaclass=Meta):
        pass

    raise Closed("no attributes")


def text_of_a_class_of_its_own(_number: int) -> None:
    own_code = refuse

    class Text(str):
        __slots__ = ()
        __len__ = __format__ = encode = own_code  # type: ignore[assignment]

    class Odd(ValueError):
        def __str__(self) -> str:
            return Text("odd text")

    raise Odd


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize(
    ("fail", "text"),
    [
        (text_with_a_lone_surrogate, "ValueError: cannot read name \\udcff"),
        (name_without_repr, "ModuleNotFoundError: no such module"),
        (name_without_a_truth, "ImportError: no such name"),
        (traceback_that_raises, "Hidden: no traceback"),
        (class_that_raises, "Unnamed: no class"),
        (attributes_of_its_class_that_raise, "Closed: no attributes"),
        (text_of_a_class_of_its_own, "Odd: odd text"),
    ],
)
def test_a_hostile_exception_is_a_result(
    pool: ScriptedMaster, fail: Callable[[int], None], text: str, retries: int
) -> None:
    (result,) = run(pool, fail, retries=retries, retry_on=["builtins.ValueError"] if retries else [])
    assert result.outcome == "error", result.message
    assert text in (result.message or "")
    assert text in (result.traceback or "")


def test_data_whose_attributes_raise_is_a_result(pool: ScriptedMaster) -> None:
    def fail(_number: int) -> None:
        class Named:
            __name__ = property(lambda _self: ["a list"])

        raise AttributeError("nothing here", obj=Named())

    class Failing:
        def __reduce__(self) -> Any:
            return fail, (0,)

    (result,) = run(pool, Failing())
    assert result.outcome == "error"
    assert "nothing here" in (result.message or "")


def test_an_attribute_that_does_not_pickle_may_have_a_name_that_raises() -> None:
    class Name(str):
        __slots__ = ()

        def __repr__(self) -> str:
            raise ZeroDivisionError

    error = ValueError("text")
    error.__dict__[Name("held")] = threading.Lock()
    data, reason = portable(error)
    assert data is None
    assert "it does not pickle" in reason
