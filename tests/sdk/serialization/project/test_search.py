"""The units that a module needs are searched once, and again after each change that an import would notice."""

from pathlib import Path

import pytest

from cloudpar._serialization.project import listings, search
from cloudpar._serialization.project.search import reachable


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in sys.path whose first state counts as settled, so that results are remembered."""
    for module in (search, listings):
        monkeypatch.setattr(module, "SETTLED_NS", -(10**18))
    project = tmp_path / "project"
    project.mkdir()
    (project / "alpha_of_search.py").write_text("import beta_of_search\n")
    (project / "beta_of_search.py").write_text("")
    monkeypatch.syspath_prepend(str(project))
    return project


def paths(name: str) -> set[Path]:
    return {Path(unit.path) for unit in reachable({name})}


def test_a_search_is_not_repeated_without_a_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = paths("alpha_of_search")
    assert first == {folder / "alpha_of_search.py", folder / "beta_of_search.py"}
    monkeypatch.setattr(search, "_search", lambda *_: pytest.fail("searched again"))
    assert paths("alpha_of_search") == first


def test_a_new_import_is_found(folder: Path) -> None:
    assert paths("beta_of_search") == {folder / "beta_of_search.py"}
    (folder / "gamma_of_search.py").write_text("")
    (folder / "beta_of_search.py").write_text("import gamma_of_search\n")
    assert paths("beta_of_search") == {folder / "beta_of_search.py", folder / "gamma_of_search.py"}


def test_a_folder_that_another_search_found_first_counts_for_all_searches(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folder / "alpha_of_search.py" in paths("alpha_of_search")
    nearer = tmp_path / "nearer"
    nearer.mkdir()
    (nearer / "alpha_of_search.py").write_text("")
    monkeypatch.syspath_prepend(str(nearer))
    assert paths("beta_of_search") == {folder / "beta_of_search.py"}
    assert paths("alpha_of_search") == {nearer / "alpha_of_search.py"}
