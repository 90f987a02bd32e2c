"""Which failures may not happen on another machine."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudpar_protocol.payloads import LACKS_CHARS
from cloudpar_worker.executor.lacks import lack


def raised(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:  # noqa: BLE001 - the task returns what it raises
        return error
    raise AssertionError("it raised nothing")


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that cannot be loaded here."""
    (tmp_path / "broken_here.py").write_text("raise RuntimeError('compiled for another release')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "broken_here"


@pytest.mark.parametrize("unpickling", [True, False])
def test_a_missing_module_is_a_lack(unpickling: bool) -> None:
    error = raised(lambda: importlib.import_module("nowhere_at_all.inside"))
    assert lack(error, unpickling=unpickling) == "no module named 'nowhere_at_all'"


@pytest.mark.parametrize("unpickling", [True, False])
def test_a_name_missing_in_an_older_module_is_a_lack(unpickling: bool) -> None:
    def older() -> None:
        from json import newer_than_all  # type: ignore[attr-defined]  # noqa: F401 - the import is the task

    assert "cannot import name 'newer_than_all'" in (lack(raised(older), unpickling=unpickling) or "")


def test_a_module_that_does_not_load_is_a_lack_while_code_is_unpickled(broken: str) -> None:
    error = raised(lambda: importlib.import_module(broken))
    assert lack(error, unpickling=True) == "RuntimeError: compiled for another release"
    assert lack(error, unpickling=False) is None


@pytest.mark.parametrize("error", [ValueError("no"), ImportError("by hand"), AttributeError("own"), SystemExit(1)])
def test_a_tasks_own_error_is_no_lack(error: BaseException) -> None:
    assert lack(error, unpickling=False) is None


def test_an_unpickling_error_without_an_import_is_no_lack() -> None:
    assert lack(raised(lambda: 1 / 0), unpickling=True) is None


def test_the_text_of_a_lack_is_bounded() -> None:
    assert len(lack(ModuleNotFoundError(name="x" * 10_000), unpickling=True) or "") <= LACKS_CHARS
