"""A master with settings of its own that keeps a journal of its workers."""

import os
from collections.abc import Iterator
from pathlib import Path

from support.master_process import TOKENS, Master
from support.operated import Operated
from system import journal

TESTS = Path(__file__).parents[1]


class Site(Master, Operated):
    """A master process without workers: tests start these separately, and may kill them."""

    admin_token = TOKENS["admin_token"]

    def __init__(
        self, folder: Path, module: str = "system.recording_master", more: dict[str, str] | None = None,
        **settings: float,
    ) -> None:  # fmt: skip
        folder.mkdir(exist_ok=True)
        self._journal = folder / "journal"
        python_path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        super().__init__(
            folder / "data", stdin=True, settings=settings, module=module,
            environment={**os.environ, **(more or {}), "PYTHONPATH": python_path, journal.JOURNAL: str(self._journal)},
        )  # fmt: skip

    def journal(self) -> Iterator[journal.Entry]:
        """Return the journal of the workers' requests."""
        return journal.read(self._journal)
