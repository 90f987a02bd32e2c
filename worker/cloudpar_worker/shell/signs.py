"""Signs of life: files whose times show the machine that the worker reaches the master, and that it has work.

An instance of the fleet ends itself if one of these files has not been touched for long (infra/lib/host/watch.sh). The
worker cannot end the instance, because its container gets no credentials of the instance. And the instance does not ask
the worker, because a worker that hangs could not answer.
"""

import contextlib
import time
from pathlib import Path
from typing import Final

_EVERY_S: Final = 1.0
"""A file is touched at most once in this many seconds."""


class Signs:
    """The files `heard` and `leased` in a folder; without a folder, no file is written."""

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._touched_at: dict[str, float] = {}

    def heard(self) -> None:
        """Show that the master has just answered a request for work."""
        self._touch("heard")

    def leased(self) -> None:
        """Show that the worker has a lease now."""
        self._touch("leased")

    def _touch(self, name: str) -> None:
        now = time.monotonic()
        if self._folder is None or now - self._touched_at.get(name, -_EVERY_S) < _EVERY_S:
            return
        self._touched_at[name] = now
        with contextlib.suppress(OSError):  # tasks go on, even if the host then takes this worker for a silent one
            (self._folder / name).touch()
