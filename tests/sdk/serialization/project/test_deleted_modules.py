"""Modules of a project whose files were deleted, or whose folder left sys.path, after their import."""

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cloudpar import Pool

SOURCE = """
import math
K = 3
class Held:
    def __init__(self, value):
        self.value = value
def add(x):
    return floor(x) + K
def floor(x):
    return math.floor(x)
def read(held):
    return held.value + K
"""

_numbers = itertools.count()


class Project:
    """A single module, a package with a module in it, and a module that imports the first one."""

    def __init__(self, folder: Path) -> None:
        number = next(_numbers)  # executors of the shared pool keep imported modules, so each test needs new names
        lone, package, user = f"lone_{number}", f"package_{number}", f"user_{number}"
        (folder / package).mkdir()
        (folder / package / "__init__.py").touch()
        self.files = [folder / f"{lone}.py", folder / package / "part.py"]
        for file in self.files:
            file.write_text(SOURCE)
        (folder / f"{user}.py").write_text(f"import {lone}\ndef call(x):\n    return {lone}.add(x)\n")
        self.lone = importlib.import_module(lone)
        self.part = importlib.import_module(f"{package}.part")
        self.user = importlib.import_module(user)

    def delete(self) -> None:
        for file in self.files:
            file.unlink()


@pytest.fixture
def project(embedded: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    made = Project(tmp_path)
    assert embedded.submit(abs, -1).result() == 1  # the client notes the imported modules; no executor imports them
    yield made
    for name in set(sys.modules) - before:
        del sys.modules[name]


def of_a_function(pool: Pool, module: ModuleType) -> int:
    return int(next(pool.map(module.add, [1.5])))


def of_a_value(pool: Pool, module: ModuleType) -> int:
    return next(pool.map(lambda held: int(held.value) + 3, [module.Held(1)]))


def of_an_argument(pool: Pool, module: ModuleType) -> int:
    return int(pool.submit(module.read, module.Held(1)).result())


def of_a_captured_module(pool: Pool, module: ModuleType) -> int:
    return next(pool.map(lambda x: int(module.add(x)), [1.5]))


def of_a_loop(pool: Pool, module: ModuleType) -> int:
    found = [0]

    def body(i: int) -> None:
        found[i] = module.add(1.5)

    pool.parallel_for(0, 1, body)
    return found[0]


@pytest.mark.parametrize("kind", ["lone", "part"])
@pytest.mark.parametrize("use", [of_a_function, of_a_value, of_an_argument, of_a_captured_module, of_a_loop])
@pytest.mark.parametrize("earlier", [False, True], ids=["at the first call", "after a call"])
def test_a_module_whose_file_was_deleted_works_as_it_was_imported(
    embedded: Pool, project: Project, use: Callable[[Pool, ModuleType], int], kind: str, *, earlier: bool
) -> None:
    module: ModuleType = getattr(project, kind)
    if earlier:
        assert use(embedded, module) == 4
    project.delete()
    assert use(embedded, module) == 4
    assert use(embedded, module) == 4


def test_a_deleted_module_is_named_once_with_what_to_do(
    embedded: Pool, project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    assert of_a_function(embedded, project.lone) == 4
    project.delete()
    for _ in range(2):
        assert of_a_function(embedded, project.lone) == 4
    (said,) = caplog.messages
    assert f"the file of the module {project.lone.__name__} is gone ({project.files[0]})" in said
    assert "put it back" in said


def test_a_deleted_module_that_another_module_imports_is_named(
    embedded: Pool, project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.delete()
    with pytest.raises(ModuleNotFoundError, match=project.lone.__name__):
        next(embedded.map(project.user.call, [1.5]))
    assert any(f"the file of the module {project.lone.__name__} is gone" in said for said in caplog.messages)


def test_a_module_whose_file_is_back_travels_as_the_file_is(embedded: Pool, project: Project) -> None:
    project.delete()
    assert of_a_function(embedded, project.lone) == 4
    project.files[0].write_text(SOURCE.replace("K = 3", "K = 5"))
    assert embedded.submit(project.lone.read, project.lone.Held(1)).result() == 6


def test_a_module_whose_folder_left_the_path_is_found_by_executors(
    embedded: Pool, project: Project, tmp_path: Path
) -> None:
    sys.path.remove(str(tmp_path))
    assert [of_a_function(embedded, module) for module in (project.lone, project.part)] == [4, 4]
    assert next(embedded.map(project.user.call, [1.5])) == 4
