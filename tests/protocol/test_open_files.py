import io
import sys
import tempfile
from pathlib import Path

import pytest

from cloudpar_protocol.open_files import reduce


def test_objects_that_are_no_files_are_left_to_pickle() -> None:
    for thing in 1, None, [io.StringIO()], io.StringIO("text"), io.BytesIO(b"bytes"), Path("file"):
        assert reduce(thing) is None


def test_standard_output_and_error_are_those_of_the_process_that_unpickles() -> None:
    assert reduce(sys.stdout) == (getattr, (sys, "stdout"))
    assert reduce(sys.stderr) == (getattr, (sys, "stderr"))


def test_a_stream_that_is_missing_is_not_mistaken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # as under pythonw, or in some services
    assert reduce(None) is None


def test_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("w") as text, tempfile.SpooledTemporaryFile() as spooled:
        for file in text, spooled:
            with pytest.raises(TypeError, match="cannot pickle"):
                reduce(file)
