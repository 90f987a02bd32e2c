import importlib
import os
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloudpar._serialization.installed import is_listed
from cloudpar._serialization.local_modules import LocalModules, is_local
from cloudpar._serialization.project import search, units
from cloudpar._serialization.project.broad_folders import is_broad
from cloudpar._serialization.project.files import digest
from cloudpar._serialization.project.lookup import Found, look_up, unit_of
from cloudpar._serialization.project.search import reachable
from cloudpar._serialization.project.units import Unit

Import = Callable[[str], types.ModuleType]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of sys.path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__in__", "/").replace("__dot__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def places(unit: Unit) -> set[str]:
    return {file.place for file in unit.files()}


def test_a_unit_is_a_lone_module_or_a_whole_package(project: Path) -> None:
    write(project, alone__dot__py="", firm__in____init____dot__py="", firm__in__deep__in__part__dot__py="")
    assert look_up("alone").unit == Unit("alone", str(project / "alone.py"))
    assert look_up("firm.deep.part").unit == look_up("firm").unit == Unit("firm", str(project / "firm"))
    assert look_up("nowhere_at_all").unit is None
    assert look_up("pytest").unit is None
    assert look_up("json").unit is None


def test_a_module_below_a_namespace_is_a_unit_of_its_own(project: Path) -> None:
    write(project, spacious__in__part__dot__py="", spacious__in__other__dot__py="")
    unit = look_up("spacious.part").unit
    assert unit == Unit("spacious.part", str(project / "spacious" / "part.py"))
    assert places(unit) == {"spacious/part.py"}


def test_files_are_those_of_the_package_without_caches_links_and_secrets(project: Path) -> None:
    firm = project / "firm"
    kept = ["__init__.py", "secrets.py", "data/table.csv", "deep/part.py", "deep/__init__.py", "template.html"]
    skipped = [
        "__pycache__/x.pyc", ".git/config", ".env", ".ipynb_checkpoints/a.py", "node_modules/a.js", "server.pem",
        "prod.env", "id_rsa", "credentials", "credentials.json", "secrets.toml", "old.pyc", "venv/lib/a.py",
    ]  # fmt: skip
    for name in [*kept, *skipped, "venv/pyvenv.cfg"]:
        (firm / name).parent.mkdir(parents=True, exist_ok=True)
        (firm / name).write_text("")
    (firm / "link.csv").symlink_to("/etc/passwd")
    (firm / "linked").symlink_to("/etc")
    unit = look_up("firm").unit
    assert unit is not None
    assert places(unit) == {f"firm/{name}" for name in kept}


def test_a_file_that_goes_during_the_search_is_left_out_of_its_package(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, firm__in____init____dot__py="", firm__in__part__dot__py="", firm__in__4913="")
    look = units._stays

    def saves(place: str) -> bool:
        (project / "firm" / "4913").unlink(missing_ok=True)  # an editor removes the file by which it tests the folder
        return look(place)

    monkeypatch.setattr(units, "_stays", saves)
    assert places(Unit("firm", str(project / "firm"))) == {"firm/__init__.py", "firm/part.py"}


def test_code_that_links_lead_to_belongs_to_a_package_and_stays_here(project: Path) -> None:
    firm, other = project / "firm", project / "other"
    for folder in (firm, other):
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("")
    (other / "table.csv").write_text("1")
    (firm / "linked").symlink_to(other)
    (other / "back").symlink_to(firm)
    unit = look_up("firm").unit
    assert unit is not None
    linked = [file.place for file in unit.files() if not file.travels]
    assert linked == ["firm/linked/__init__.py", "firm/linked/back/__init__.py"]


@pytest.mark.parametrize("kind", ["home", "temporary"])
def test_a_home_folder_with_an_init_file_is_no_package_as_a_whole(
    project: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = project / "ann"
    write(home, __init____dot__py="", lone__dot__py="from ann import work", photos__in__x__dot__jpg="")
    write(home, work__in____init____dot__py="", work__in__part__dot__py="", work__in__table__dot__csv="")
    if kind == "home":
        monkeypatch.setenv("HOME", str(home))
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(home))
    places = {
        name: {file.place for listing in reachable([name]).values() for file in listing.files}
        for name in ("ann", "ann.lone", "ann.work.part")
    }
    work = {"ann/work/__init__.py", "ann/work/part.py", "ann/work/table.csv"}
    assert places == {
        "ann": {"ann/__init__.py"},
        "ann.lone": {"ann/__init__.py", "ann/lone.py", *work},
        "ann.work.part": {"ann/__init__.py", *work},
    }
    assert unit_of(importlib.import_module("ann")) == Unit("ann", str(home / "__init__.py"))


@pytest.mark.parametrize("folder", ["/", "/tmp", "/home", "/usr", "~", "~/Documents"])
def test_a_folder_of_the_system_or_of_a_whole_home_is_broad(folder: str) -> None:
    assert is_broad(str(Path(folder).expanduser()))


def test_a_folder_below_is_not_broad(tmp_path: Path) -> None:
    assert not is_broad(str(tmp_path))
    assert not is_broad(str(Path.home() / "project"))


def test_a_module_that_appears_or_goes_is_noticed(project: Path) -> None:
    write(project, first__dot__py="import second")
    assert {unit.name for unit in reachable(["first"])} == {"first"}
    write(project, second__dot__py="")
    assert {unit.name for unit in reachable(["first"])} == {"first", "second"}
    (project / "second.py").unlink()
    assert {unit.name for unit in reachable(["first"])} == {"first"}


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that were searched."""
    seen: list[str] = []

    def recording(name: str) -> Found:
        seen.append(name)
        return look_up(name)

    monkeypatch.setattr(search, "look_up", recording)
    return seen


def settle(*folders: Path) -> None:
    """Make folders look as if they had changed long ago."""
    for folder in folders:
        os.utime(folder, (1_000_000_000, 1_000_000_000))


def test_modules_in_unchanged_folders_are_searched_once(
    project: Path, searches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, first__dot__py="import numpy, spacious.one\nfrom spacious.two import x", lone__dot__py="")
    write(project, spacious__in__one__dot__py="", spacious__in__two__dot__py="x = 1")
    monkeypatch.setattr(sys, "path", [str(project)])
    settle(project, project / "spacious")
    expected = {"first", "spacious.one", "spacious.two"}
    assert {unit.name for unit in reachable(["first"])} == expected
    assert sorted(searches) == ["first", "numpy", "spacious", "spacious.one", "spacious.two", "spacious.two.x"]
    searches.clear()
    assert {unit.name for unit in reachable(["first"])} == expected
    assert searches == []


def test_a_module_that_appears_or_goes_in_a_namespace_is_noticed(project: Path) -> None:
    write(project, first__dot__py="import spacious.one, spacious.two", spacious__in__one__dot__py="")
    settle(project, project / "spacious")
    assert {unit.name for unit in reachable(["first"])} == {"first", "spacious.one"}
    write(project, spacious__in__two__dot__py="")
    assert {unit.name for unit in reachable(["first"])} == {"first", "spacious.one", "spacious.two"}
    (project / "spacious" / "one.py").unlink()
    assert {unit.name for unit in reachable(["first"])} == {"first", "spacious.two"}


def test_a_folder_with_too_many_data_files_keeps_all_of_its_code(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(units, "DATA_FILES", 2)
    write(project, firm__in____init____dot__py="", firm__in__part__dot__py="", firm__in__zoo__in__last__dot__py="")
    write(project, **{f"firm__in__data__in__{number}__dot__txt": "" for number in range(4)})
    unit = look_up("firm").unit
    assert unit is not None
    code = {"firm/__init__.py", "firm/part.py", "firm/zoo/last.py"}
    assert places(unit) == places(unit) == code | {"firm/data/0.txt", "firm/data/1.txt"}
    assert [record.getMessage().split(", ")[0] for record in caplog.records] == [
        f"cloudpar: {project / 'firm'} has 4 data files"
    ]


def test_any_change_of_a_file_changes_the_digest(project: Path) -> None:
    write(project, firm__in____init____dot__py="A = 1")
    unit = look_up("firm").unit
    assert unit is not None
    first = digest(unit.files())
    assert digest(unit.files()) == first
    os.utime(project / "firm" / "__init__.py", ns=(0, 0))
    second = digest(unit.files())
    write(project, firm__in__table__dot__csv="1")
    assert len({first, second, digest(unit.files())}) == 3


def test_reachable_is_what_the_sources_import_of_the_project(project: Path) -> None:
    write(
        project,
        firm__in____init____dot__py="from . import pricing\nimport json, helper as h",
        firm__in__pricing__dot__py="def f():\n    from spacious import (\n        one,  # first\n        two,\n    )",
        helper__dot__py="import numpy\nimport nowhere_at_all\nfrom firm.pricing import f",
        unrelated__dot__py="",
        spacious__in__one__dot__py="from .three import x",
        spacious__in__two__dot__py="",
        spacious__in__three__dot__py="",
    )
    names = {unit.name for unit in reachable({"firm.pricing", "json"})}
    assert names == {"firm", "helper", "spacious.one", "spacious.two", "spacious.three"}


def distribution(folder: Path, name: str, files: list[str]) -> None:
    write(folder, **{f"{name}-1.0.dist-info__in__METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"})
    (folder / f"{name}-1.0.dist-info" / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_a_module_that_a_distribution_beside_it_lists_is_installed(project: Path) -> None:
    write(project, listed__in____init____dot__py="", listed__in__deep__dot__py="", lone__dot__py="", mine__dot__py="")
    distribution(project, "listed", ["listed/__init__.py", "listed/deep.py", "lone.py", "listed-1.0.dist-info/RECORD"])
    for name in "listed", "listed.deep", "lone", "mine":
        module = importlib.import_module(name)
        assert is_listed(name, str(module.__file__)) == (name != "mine")
        assert is_local(module) == (name == "mine")
    assert look_up("listed").unit is look_up("lone").unit is None
    assert look_up("mine").unit is not None


def test_an_editable_install_is_of_the_project(project: Path) -> None:
    source = project / "source"
    write(source, editable__in____init____dot__py="")
    (source / "editable.egg-info").mkdir()
    (source / "editable.egg-info" / "SOURCES.txt").write_text("editable/__init__.py\n")
    (source / "editable.egg-info" / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: editable\nVersion: 1.0\n")
    assert not is_listed("editable", str(source / "editable" / "__init__.py"))


def test_a_module_that_no_import_finds_is_a_stray(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, found__dot__py="", hidden__in__stray__dot__py="")
    importlib.import_module("found")
    monkeypatch.syspath_prepend(str(project / "hidden"))
    importlib.import_module("stray")
    sys.path.remove(str(project / "hidden"))
    modules = LocalModules()
    assert {"found", "stray"} <= modules.find().keys()
    assert "stray" in modules.strays()
    assert "found" not in modules.strays()
    assert modules.units()["found"] == Unit("found", str(project / "found.py"))
