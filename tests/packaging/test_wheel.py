"""The wheel that users install contains the four packages and nothing else."""

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from docs.pages import ROOT

PACKAGES = {"cloudpar", "cloudpar_master", "cloudpar_protocol", "cloudpar_worker"}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the files of a wheel that is built as `pip install` builds it."""
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        return wheel.namelist()


def test_the_wheel_has_the_four_packages(names: list[str]) -> None:
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == PACKAGES


def test_the_wheel_has_python_files_and_type_markers_only(names: list[str]) -> None:
    code = [name for name in names if ".dist-info/" not in name]
    assert {Path(name).suffix for name in code} <= {".py", ".typed"}
    assert not [name for name in code if Path(name).stem in {"samples", "vectors", "openapi", "conftest"}]


def test_the_wheel_has_each_source_file_of_the_packages(names: list[str]) -> None:
    for folder in ("sdk/protocol/cloudpar_protocol", "sdk/python/cloudpar", "functions/cloudpar_master"):
        for path in (ROOT / folder).rglob("*.py"):
            assert path.relative_to((ROOT / folder).parent).as_posix() in names
