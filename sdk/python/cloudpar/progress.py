"""Progress bars for maps that take a while, one each."""

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

from . import notices
from .awaited import Awaited
from .inbox import Share
from .quantity import quantity

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from cloudpar_protocol.client_messages import FleetStatus

AFTER_S = 2.0
"""Nobody wants a bar for what is done at once."""

TELL_S = notices.AFTER_S
"""Without a bar the log says that nobody works yet: after this time, and then each time that it took TELL_GROWTH times
as long. Workers of a fleet that was empty take one to three minutes."""

TELL_GROWTH = 3.0

REMEMBERED = 1_000
"""How many lines are remembered, so that none is printed twice."""

log = logging.getLogger("cloudpar")


class Bars:
    """Shows packages of maps on standard error while they run, and how their workers start."""

    def __init__(self, progress: bool | None, endpoint: str) -> None:
        self._endpoint = endpoint
        self._forced = progress is True
        self._wanted = sys.stderr is not None and sys.stderr.isatty() if progress is None else progress
        self._lock = threading.Lock()
        self._bars: dict[Awaited, TaskID] = {}
        self._display: Progress | None = None
        self._said: str | None = None
        self._noted: dict[str, None] = {}
        self._tell_s = TELL_S

    def update(self, awaited: Awaited) -> None:
        """There is news of a package."""
        self._explain(awaited)
        self._note(awaited)
        if not self._wanted or not isinstance(awaited.receiver, Share):
            self._tell(awaited)
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
            self._bars[awaited] = self._display.add_task(awaited.id, total=awaited.package.tasks, state="")
        progress = awaited.package.progress
        waited_s = time.monotonic() - awaited.started_at
        if awaited.fleet is not None and not progress.executors:
            state = waiting(awaited.fleet, waited_s)
        else:
            state = f"{quantity(progress.errors, 'error')}, {quantity(progress.executors, 'executor')}"
        self._display.update(self._bars[awaited], completed=progress.done, state=state)

    def _explain(self, awaited: Awaited) -> None:
        """Why no worker can start: once for each reason, above the bars or in the log."""
        message = awaited.fleet.message if awaited.fleet is not None and not awaited.ended.is_set() else None
        if message is None or message == self._said:
            return
        with self._lock:
            self._said = message
            self._print(f"no worker can start yet: {message}")

    def _note(self, awaited: Awaited) -> None:
        """What is to be known of the workers for a package: each line once, above the bars or in the log."""
        lines = list(notices.of_set_aside(awaited.id, awaited.set_aside))
        waits = not (awaited.ended.is_set() or awaited.package.progress.executors)
        long_enough = time.monotonic() - awaited.started_at >= notices.AFTER_S
        if awaited.placement is not None and awaited.fleet is None and waits and long_enough:
            line = notices.of_placement(awaited.placement, self._endpoint)
            lines += [line] if line is not None else []
        with self._lock:
            for line in lines:
                if line not in self._noted:
                    self._noted[line] = None
                    self._print(line)
            while len(self._noted) > REMEMBERED:
                del self._noted[next(iter(self._noted))]

    def _print(self, text: str) -> None:
        if self._display is None:
            log.warning("cloudpar: %s", text)
        else:
            self._display.console.print(f"cloudpar: {text}", markup=False, highlight=False)

    def _tell(self, awaited: Awaited) -> None:
        """How workers start, in the log, where there is no bar."""
        waited_s = time.monotonic() - awaited.started_at
        with self._lock:
            if awaited.package.progress.executors:
                self._tell_s = TELL_S
            elif awaited.fleet is not None and not awaited.ended.is_set() and waited_s >= self._tell_s:
                self._tell_s = waited_s * TELL_GROWTH
                log.warning("cloudpar: no result yet: %s", waiting(awaited.fleet, waited_s))

    def _remove(self, awaited: Awaited) -> None:
        bar = self._bars.pop(awaited, None)
        if bar is None or self._display is None:
            return
        self._display.update(bar, completed=awaited.package.received)
        if not self._bars:
            self._display.stop()
            self._display = None


def waiting(fleet: "FleetStatus", waited_s: float) -> str:
    """How workers start.

    >>> from cloudpar_protocol.client_messages import FleetStatus
    >>> waiting(FleetStatus(running=0, starting=2), 40.4)
    '0 workers, 2 starting, 40 s'
    """
    return f"{quantity(fleet.running, 'worker')}, {fleet.starting} starting, {waited_s:.0f} s"


def _display() -> "Progress":
    from rich.console import Console  # noqa: PLC0415  # costs what most processes need not pay
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
