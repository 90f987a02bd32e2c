"""A folder for workers whose executors have users of their own."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that other users may enter, unlike pytest's own. In its folder `tmp`, each of them may write."""
    with tempfile.TemporaryDirectory(prefix="cloudpar-tests-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o1777)
        yield folder
