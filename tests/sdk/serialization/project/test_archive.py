import io
import zipfile
from pathlib import Path

import pytest

from cloudpar._serialization.project import archive as archives
from cloudpar._serialization.project.archive import archive
from cloudpar._serialization.project.units import Unit
from cloudpar.errors import TooLarge


@pytest.fixture
def firm(tmp_path: Path) -> Unit:
    for name, size in ("__init__.py", 10), ("small.csv", 30), ("large.csv", 60), ("middle.csv", 40):
        (tmp_path / name).write_bytes(b"#" * size)
    return Unit("firm", str(tmp_path))


def names(made: bytes) -> list[str]:
    return [Path(name).name for name in zipfile.ZipFile(io.BytesIO(made)).namelist()]


def test_the_same_files_make_the_same_archive(firm: Unit) -> None:
    assert archive(firm.files()) == archive(firm.files())
    assert names(archive(firm.files())) == ["__init__.py", "large.csv", "middle.csv", "small.csv"]


def test_the_largest_data_files_beyond_the_limit_are_left_out_with_one_warning(
    firm: Unit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(archives, "DATA_BYTES", 70)
    for _ in range(2):
        assert names(archive(firm.files())) == ["__init__.py", "middle.csv", "small.csv"]
    (text,) = caplog.messages
    assert "large.csv (60 bytes)" in text
    assert "put it where the workers can read it" in text


def test_too_much_code_is_refused_with_the_largest_files(firm: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "CODE_BYTES", 9)
    with pytest.raises(TooLarge, match=r"install them at the workers.*__init__.py \(10 bytes\)"):
        archive(firm.files())
