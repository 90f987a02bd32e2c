import importlib
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

import pytest

from cloudpar._serialization import local_modules
from cloudpar._serialization.local_modules import LocalModules


def test_two_threads_find_the_same_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, on = Event(), Event()

    def is_local(_module: object) -> bool:
        looking.set()
        return on.wait()

    monkeypatch.setattr(local_modules, "is_local", is_local)
    modules = LocalModules()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(modules.find)
        looking.wait()
        second = threads.submit(modules.find)
        wait([second], timeout=0.1)  # long enough for a thread that does not wait for the other
        on.set()
        assert first.result() == second.result() != {}


def test_a_module_that_is_imported_again_from_another_folder_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules, paths = LocalModules(), []
    for name in "one", "other":
        (tmp_path / name).mkdir()
        (tmp_path / name / "moved_about.py").write_text("")
        monkeypatch.syspath_prepend(str(tmp_path / name))
        sys.modules.pop("moved_about", None)
        importlib.import_module("moved_about")
        paths.append(modules.units()["moved_about"].path)
    del sys.modules["moved_about"]
    assert paths == [str(tmp_path / name / "moved_about.py") for name in ("one", "other")]
