"""What packages leave behind is removed without keeping requests."""

from pathlib import Path

import pytest

from cloudpar_master.adapters.embedded.waste import Waste


@pytest.fixture
def waste(tmp_path: Path) -> Waste:
    left = tmp_path / ".waste" / "0" / "left.blob"
    left.parent.mkdir(parents=True)
    left.touch()
    return Waste(tmp_path / ".waste")


def test_what_a_crash_has_left_is_removed_at_the_start(tmp_path: Path, waste: Waste) -> None:
    del waste
    assert not list(tmp_path.rglob("*.blob"))


def test_what_is_thrown_away_is_out_of_its_place_at_once_and_removed_by_a_thread(
    tmp_path: Path, waste: Waste, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waste, "_start", lambda: None)
    (tmp_path / "results" / "lease").mkdir(parents=True)
    for place in ("results/lease/0.blob", "data.blob"):
        (tmp_path / place).touch()
    waste.throw(tmp_path / "results")
    waste.throw(tmp_path / "data.blob")
    waste.throw(tmp_path / "absent.blob")
    assert [path.name for path in tmp_path.iterdir()] == [".waste"]
    assert len(list((tmp_path / ".waste").iterdir())) == 2
    waste.remove_next()
    waste.remove_next()
    assert not list((tmp_path / ".waste").iterdir())
