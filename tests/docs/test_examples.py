"""The examples in docstrings and in the documentation do what they show."""

import doctest
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import cloudpar
import cloudpar_master
import cloudpar_protocol
import cloudpar_worker

ROOT = Path(__file__).parents[2]
PACKAGES = (cloudpar_protocol, cloudpar, cloudpar_master, cloudpar_worker)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.name != "reference.md"]


def _modules(package: ModuleType) -> list[str]:
    inner = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [package.__name__, *(info.name for info in inner if not info.name.endswith("__main__"))]


def _examples() -> list[doctest.DocTest]:
    found = []
    for name in (name for package in PACKAGES for name in _modules(package)):
        module = importlib.import_module(name)
        # As in a script of a user, so that functions defined there travel as a user's do.
        names = vars(module) | {"__name__": "__main__"}
        found += doctest.DocTestFinder(exclude_empty=True).find(module, name, globs=names)
    return [test for test in found if test.examples]


@pytest.mark.parametrize("example", _examples(), ids=lambda example: example.name)
def test_docstring(example: doctest.DocTest) -> None:
    outcome = doctest.DocTestRunner(optionflags=OPTIONS).run(example)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page(path: Path) -> None:
    outcome = doctest.testfile(str(path), module_relative=False, optionflags=OPTIONS, encoding="utf-8")
    assert outcome.failed == 0
