"""Task code in a process in which `cloudpar` cannot be imported, like an executor's."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloudpar.effects import SideEffectError
from sdk.effects.loop import elsewhere


def test_lists_and_objects_need_no_numpy() -> None:
    class Shape:
        sides = [0, 0, 0]  # noqa: RUF012 - a container of a class

        def __init__(self) -> None:
            self.area: object = 0

    class Square(Shape):
        def __init__(self) -> None:
            super().__init__()
            self.kept = [Shape]

    result: list[Any] = [None] * 3
    square = Square()
    found: dict[int, Any] = {}

    def body(i: int) -> None:
        result[i] = (lambda: i, Square(), square)
        Shape.sides[i] = i
        found[i] = found
        if i == 2:
            square.area = {"shape": square}

    assert not elsewhere(body, [2, 0, 1])
    assert [make() for make, _, _ in result] == [0, 1, 2]
    # An instance that the task made is of the caller's own class.
    assert all(type(made) is Square and made.kept == [Shape] and same is square for _, made, same in result)
    assert Shape.sides == [0, 1, 2]
    assert square.area == {"shape": square}
    assert found[1] is found


def test_arrays_are_copied_back_from_a_process_without_cloudpar() -> None:
    base = np.zeros((3, 4))
    inner = base[:, 1:3]
    rows: list[Any] = [None] * 3

    def body(i: int) -> None:
        inner[i] = i + 1
        base[i] *= 2
        rows[i] = base[i]

    assert elsewhere(body, [1, 0, 2])
    assert base[:, 1:3].tolist() == [[2, 2], [4, 4], [6, 6]]
    assert all(np.shares_memory(row, base) for row in rows)


@pytest.mark.parametrize("deep", [False, True])
def test_a_write_to_a_class_attribute_is_refused(deep: bool) -> None:
    class Counter:
        total = 0

    class Deeper(Counter):
        pass

    kept = [Deeper()]

    def body(i: int) -> None:
        type(kept[0]).total = i
        if deep:
            Counter.total = i

    with pytest.raises(SideEffectError, match=r"Deeper\.total|Counter\.total") as caught:
        elsewhere(body, [1, 2])
    assert "attribute of a class" in str(caught.value)
    assert Counter.total == 0


PRELUDE = """
import json, pickle, sys
sys.path.append(sys.argv[1])
from cloudpar.effects import SideEffectError, capture
from sdk.effects.loop import elsewhere

def named(body):
    try:
        elsewhere(body, [0, 1, 2])
    except SideEffectError as error:
        return error.variable
"""


def of_script(text: str, *arguments: str) -> Any:
    """Run a script, whose functions and classes travel by value; return the JSON that it prints."""
    tests = str(Path(__file__).parents[2])
    command = [sys.executable, "-W", "error", "-c", PRELUDE + textwrap.dedent(text), tests, *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_functions_and_classes_of_a_script_are_copied_back_or_refused() -> None:
    found = of_script("""
    import dataclasses, enum

    result = [None] * 4
    total = 0

    class Level(enum.Enum):
        LOW = [1]
        HIGH = "high"

    @dataclasses.dataclass
    class Point:
        x: int = 0
        seen: list = dataclasses.field(default_factory=list)

    @dataclasses.dataclass(slots=True)
    class Slim:
        x: int = 0

    points = [Point() for _ in range(4)]
    slim = Slim()

    def square(i):
        return i * i

    def body(i):
        result[i] = (square(i), Level.HIGH, Point(i, [points[i]]))
        points[i].x = i
        if i == 3:
            slim.x = 3

    def rebinding(i):
        global total
        total += i

    def member(i):
        Level.LOW.value.append(i)

    def class_attribute(i):
        Point.count = i

    elsewhere(body, [0, 1, 2, 3])
    print(json.dumps({
        "squares": [value[0] for value in result],
        "own": all(v[1] is Level.HIGH and type(v[2]) is Point and v[2].seen[0] is p for v, p in zip(result, points)),
        "points": [point.x for point in points],
        "slim": slim.x,
        "named": [named(rebinding), named(member), named(class_attribute)],
        "left": [total, Level.LOW.value, hasattr(Point, "count")],
    }))
    """)
    assert found == {
        "squares": [0, 1, 4, 9],
        "own": True,
        "points": [0, 1, 2, 3],
        "slim": 3,
        "named": ["total", "Level.LOW", "Point.count"],
        "left": [0, [1], False],
    }


def test_a_module_that_travels_by_value_is_copied_back_or_refused(tmp_path: Path) -> None:
    (tmp_path / "project_tools.py").write_text(
        "cells = [0, 0, 0]\nlimit = 5\nclass Kept:\n    notes = {}\ndef put(i):\n    cells[i] = i + limit\n"
        "def raise_limit(i):\n    global limit\n    limit = i\n"
    )
    found = of_script(
        """
    import cloudpickle
    sys.path.insert(0, sys.argv[2])
    import project_tools
    cloudpickle.register_pickle_by_value(project_tools)

    def through_module(i):
        project_tools.Kept.notes[i] = project_tools.cells

    def rebind(i):
        project_tools.limit = i

    elsewhere(project_tools.put, [0, 1, 2])
    elsewhere(through_module, [0, 1, 2])
    same = all(cells is project_tools.cells for cells in project_tools.Kept.notes.values())
    print(json.dumps([project_tools.cells, list(project_tools.Kept.notes), same,
                      named(rebind), named(project_tools.raise_limit), project_tools.limit]))
    """,
        str(tmp_path),
    )
    assert found == [[5, 6, 7], [0, 1, 2], True, "project_tools.limit", "limit", 5]


def test_two_task_codes_with_one_class_in_one_executor_do_not_mix() -> None:
    """cloudpickle keeps one class for both task codes, with the attributes of the one that was loaded last."""
    found = of_script("""
    class Kept:
        cells = [0, 0]

    def body(i):
        Kept.cells[i] = i + 1

    own, found = Kept.cells, []
    first, second = capture(body), capture(body)
    codes = [pickle.loads(pickle.dumps(captured.code)) for captured in (first, second)]
    for captured, code in zip((first, second), codes):
        merge = captured.merge()
        for i in range(2):
            merge.add(i, code(i))
        own[:] = [0, 0]
        merge.commit()
        found.append(list(own))
    print(json.dumps(found))
    """)
    assert found == [[1, 2], [1, 2]]
