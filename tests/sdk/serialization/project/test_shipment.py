"""Task code with a project runs where neither this package nor the project is installed, as at any worker."""

import importlib
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloudpar._serialization.pickling import DataNeeds, dumps, pickled
from cloudpar._serialization.project import shipment
from cloudpar._serialization.project.files import File
from cloudpar._serialization.project.shipment import Shipper
from cloudpar._serialization.task_code import Code, serialize
from cloudpar_protocol import large_buffers
from cloudpar_protocol.large_buffers import LARGE_BYTES

ALONE = """
import pickle, sys
sys.modules.update(dict.fromkeys(["cloudpar", "cloudpar_worker", "cloudpar_protocol"]))  # not to be imported
for path in sys.argv[1:]:
    code, item = pickle.loads(open(path, "rb").read())
    function = pickle.loads(code)
    print(function(pickle.loads(item)))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with a module."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.syspath_prepend(str(project))
    (project / "planner.py").write_text("import threading\nLOCK = threading.Lock()\ndef plan(x): return 'first', x")
    yield project
    sys.modules.pop("planner", None)


def task(tmp_path: Path, name: str, value: object) -> str:
    """A file with the code and the data of a task, as workers on other machines get them."""
    planner: Any = importlib.import_module("planner")
    function = serialize(planner.plan)
    data = pickled(value, "x")
    needs = DataNeeds()
    needs.modules.update(data.modules)
    code = Shipper(here=False).ship(function, needs)
    path = tmp_path / name
    path.write_bytes(pickle.dumps((code.data, data.data)))
    return str(path)


def test_task_code_runs_where_only_cloudpickle_is_installed(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", ALONE, task(tmp_path, "task", 7)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr) == ("('first', 7)\n", "")


def test_a_later_version_is_the_one_that_runs(folder: Path, tmp_path: Path) -> None:
    first = task(tmp_path, "first", 1)
    (folder / "planner.py").write_text("def plan(x):\n    return 'the second version', x")
    importlib.reload(importlib.import_module("planner"))
    second = task(tmp_path, "second", 2)
    command = [sys.executable, "-c", ALONE, first, second, first]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert ended.stdout.splitlines() == ["('first', 1)", "('the second version', 2)", "('first', 1)"]
    assert not ended.stderr


def test_a_function_without_project_modules_is_not_changed() -> None:
    code = serialize(len)
    assert Shipper(here=False).ship(code, DataNeeds()) is code
    assert Shipper(here=True).ship(code, DataNeeds()) is code


def test_executors_on_this_machine_get_folders_that_were_added_to_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipper = Shipper(here=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert str(tmp_path).encode() in shipper.ship(serialize(len), DataNeeds()).data


def test_a_reference_is_not_changed() -> None:
    code = Code("f", "0" * 64, b"", "json:dumps")
    assert Shipper(here=False).ship(code, DataNeeds()) is code


def test_in_its_own_process_task_code_moves_no_modules(folder: Path) -> None:
    planner: Any = importlib.import_module("planner")
    code = Shipper(here=False).ship(serialize(planner.plan), DataNeeds())
    assert pickle.loads(code.data).enter_project_of_cloudpar() is planner.plan
    assert sys.modules["planner"] is planner
    assert pickle.loads(dumps(planner.plan, "f")) is planner.plan


def test_code_that_a_link_leads_to_goes_to_no_worker_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, elsewhere = folder / "linking", folder.parent / "elsewhere"
    for path in (package, elsewhere):
        path.mkdir()
        (path / "__init__.py").write_text("")
    (package / "linked").symlink_to(elsewhere)
    packed: list[str] = []

    def archive(files: Iterable[File]) -> bytes:
        packed.extend(file.place for file in files)
        return b""

    monkeypatch.setattr(shipment, "archive", archive)
    needs = DataNeeds()
    needs.modules.add("linking")
    Shipper(here=False).ship(serialize(len), needs)
    assert packed == ["linking/__init__.py"]


def test_an_array_in_task_code_with_a_project_stays_where_it_is(folder: Path) -> None:
    planner: Any = importlib.import_module("planner")
    code = Shipper(here=False).ship(serialize(partial(planner.plan, np.zeros(LARGE_BYTES))), DataNeeds())
    memory = bytearray(code.data)
    (array,) = large_buffers.loads(memoryview(memory)).enter_project_of_cloudpar().args
    array[:] = 1.5
    assert array.tobytes() in memory
    assert (
        pickle.loads(code.data).enter_project_of_cloudpar().args[0].shape == array.shape
    )  # as earlier workers read it
