"""Progress bars for maps that take a while, one each."""

import sys
import threading
import time
from typing import TYPE_CHECKING

from .awaited import Awaited
from .inbox import Share

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

AFTER_S = 2.0
"""Nobody wants a bar for what is done at once."""


class Bars:
    """Shows packages of maps on standard error while they run."""

    def __init__(self, progress: bool | None) -> None:
        self._forced = progress is True
        self._wanted = sys.stderr is not None and sys.stderr.isatty() if progress is None else progress
        self._lock = threading.Lock()
        self._bars: dict[Awaited, TaskID] = {}
        self._display: Progress | None = None

    def update(self, awaited: Awaited) -> None:
        """There is news of a package."""
        if not self._wanted or not isinstance(awaited.receiver, Share):
            return
        with self._lock:
            if awaited.ended.is_set():
                self._remove(awaited)
            elif self._forced or time.monotonic() - awaited.started_at > AFTER_S:
                self._show(awaited)

    def _show(self, awaited: Awaited) -> None:
        if self._display is None:
            self._display = _display()
            self._display.start()
        if awaited not in self._bars:
            self._bars[awaited] = self._display.add_task(awaited.id, total=awaited.package.tasks, errors=0, executors=0)
        progress = awaited.package.progress
        self._display.update(
            self._bars[awaited], completed=progress.done, errors=progress.errors, executors=progress.executors
        )

    def _remove(self, awaited: Awaited) -> None:
        bar = self._bars.pop(awaited, None)
        if bar is None or self._display is None:
            return
        self._display.update(bar, completed=awaited.package.received)
        if not self._bars:
            self._display.stop()
            self._display = None


def _display() -> "Progress":
    from rich.console import Console  # noqa: PLC0415  # costs what most processes need not pay
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[errors]} errors, {task.fields[executors]} executors"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
