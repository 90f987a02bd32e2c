"""Which advice a task's exception gets about this worker's modules."""

import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from cloudpar_worker.executor import advice
from cloudpar_worker.executor.advice import advise
from worker.scripted_master import ScriptedMaster
from worker.tasks import error_of, run


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed libraries, with `numbers_of_old` 1.26."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "numbers_of_old").mkdir()
    (tmp_path / "numbers_of_old" / "__init__.py").write_text("")
    info = tmp_path / "numbers_of_old-1.26.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numbers-of-old\nVersion: 1.26\n")
    (info / "RECORD").write_text("numbers_of_old/__init__.py,,\n")
    caches = advice.release_of, advice._missing
    for cache in caches:
        cache.cache_clear()
    yield tmp_path
    for cache in caches:
        cache.cache_clear()
    sys.modules.pop("numbers_of_old", None)


def note_on(error: BaseException, what: str = "the task data") -> str:
    advise(error, what)
    (note,) = error.__notes__
    return str(note)


def test_the_note_about_an_older_module_names_client_and_worker(library: Path) -> None:
    import numbers_of_old  # type: ignore[import-not-found]

    note = note_on(ModuleNotFoundError("No module named 'numbers_of_old._core'", name="numbers_of_old._core"))
    assert "has numbers-of-old 1.26, without 'numbers_of_old._core'" in note
    assert "another release than the client's" in note
    assert "no module" not in note
    missing = AttributeError("Can't get attribute 'x' on <module>", name="x", obj=numbers_of_old)
    assert "has numbers-of-old 1.26. If the client has another release" in note_on(missing)
    assert "has numbers-of-old 1.26" in note_on(ImportError("cannot import name 'x'", name="numbers_of_old"))


def test_a_missing_part_of_the_standard_library_cannot_be_installed(library: Path) -> None:
    note = note_on(ModuleNotFoundError("No module named 'json.yaml'", name="json.yaml"))
    assert "has no module 'json.yaml', which the task data needs" in note
    assert "'json' is a part of Python, here 3." in note
    assert "Install" not in note


def test_the_note_about_another_platforms_extension_names_what_loads_here(library: Path) -> None:
    (library / "native.cpython-39-powerpc.so").touch()
    note = note_on(ModuleNotFoundError("No module named 'native'", name="native"), "the task code")
    assert "cannot load native.cpython-39-powerpc.so" in note
    assert EXTENSION_SUFFIXES[0] in note
    assert "Build and install 'native' at the worker" in note


@pytest.mark.parametrize(("module", "distribution"), [("sklearn_of_nowhere", "sklearn_of_nowhere"), ("cv2", "opencv")])
def test_the_note_about_a_missing_module_says_how_to_get_it(module: str, distribution: str) -> None:
    note = note_on(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert f"has no module {module!r}" in note
    assert f"Install '{distribution}" in note
    assert "import it by a plain `import`" in note


def test_an_exception_of_the_task_without_a_module_has_no_note() -> None:
    error = ValueError("the task's")
    advise(error, "the task")
    assert not hasattr(error, "__notes__")
    assert note_on(ValueError("data")) == "Raised at the worker while it unpickled the task data."


def test_a_failed_import_while_the_task_runs_has_the_note_too(pool: ScriptedMaster) -> None:
    def work(_number: int) -> None:
        import a_module_of_nowhere  # type: ignore[import-not-found]  # noqa: F401 - the import is the task

    (result,) = run(pool, work)
    error = error_of(result)
    (note,) = error.__notes__
    assert "has no module 'a_module_of_nowhere', which the task needs" in note
    assert note in str(result.traceback)
