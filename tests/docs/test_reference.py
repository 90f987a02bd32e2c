"""The reference is up to date, and describes everything that is public."""

import inspect
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cloudpar
from cloudpar.cli.application import application

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "reference.py"))


@pytest.fixture(scope="module")
def text(script: dict[str, Any]) -> str:
    render: Callable[[], str] = script["render"]
    return render()


def test_the_committed_reference_is_up_to_date(text: str) -> None:
    assert (DOCS / "reference.md").read_text() == text, "python docs/reference.py > docs/reference.md"


def test_every_public_name_and_every_command_is_in_it(text: str) -> None:
    for name in cloudpar.__all__:
        assert name.startswith("__") or f"`{name}" in text or f"`cloudpar.{name}`" in text
    for name in application.commands:
        assert f"### `cloudpar {name}" in text


def test_every_public_class_and_method_has_a_docstring() -> None:
    for kind in filter(inspect.isclass, (getattr(cloudpar, name) for name in cloudpar.__all__)):
        assert inspect.getdoc(kind)
        for name, member in vars(kind).items():
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_sections_become_lists_and_examples_code(script: dict[str, Any]) -> None:
    docstring = (
        "First.\n\nMore of\nit.\n\nArgs:\n    one: The first,\n        on two lines.\n    two: The second.\n\n"
        "Returns:\n    Something.\n\nExample:\n    >>> 1\n    1\n\n    >>> 2\n    2"
    )
    assert script["prose"](docstring) == (
        "First.\n\nMore of\nit.\n\nArgs:\n\n- `one`: The first, on two lines.\n- `two`: The second.\n\n"
        "Returns: Something.\n\n```pycon\n>>> 1\n1\n\n>>> 2\n2\n```"
    )


def test_a_drawing_in_a_docstring_is_not_changed(script: dict[str, Any]) -> None:
    assert script["prose"]("A tree.\n\n    a\n    └── b\n\nEnd.") == "A tree.\n\n```text\na\n└── b\n```\n\nEnd."
