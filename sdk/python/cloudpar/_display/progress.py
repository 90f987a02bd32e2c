"""Progress bars for maps that take some seconds, one for each package."""

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

from cloudpar._client.pacing import remaining_s
from cloudpar._client.package_handle import PackageHandle
from cloudpar._client.result_buffer import MapPart
from cloudpar._formatting import notices
from cloudpar._formatting.quantity import quantity

from .progress_displays import Bar, Display, Lines, Notebook, Terminal, in_notebook

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudpar_protocol.client_messages import FleetStatus, Progress

AFTER_S = 2.0
"""How long after a package's start its bar appears, in seconds. A bar for shorter work would only flicker. With
`progress=True` the bar appears at once.
"""

TELL_S = notices.AFTER_S
"""If a package without a bar has waited this many seconds for an executor, the pool logs how many workers of the fleet
run or are starting. It logs this again each time that the wait is TELL_GROWTH times as long as at the last message.
Workers of an empty fleet take one to three minutes to start.
"""

TELL_GROWTH = 3.0

REMEMBERED = 1_000
"""How many of the last printed lines are remembered, so that none of them is printed twice."""

LABEL_CHARS = 40
"""The longest label of a bar, in characters; the rest is left out."""

log = logging.getLogger("cloudpar")


class Bars:
    """Shows the progress of packages and how their workers start, each package with a bar of its own.

    Args:
        progress: Whether to show bars. None means only in terminals and notebooks.
        endpoint: The master's URL, for notices.
    """

    def __init__(self, progress: bool | None, endpoint: str) -> None:
        self._endpoint = endpoint
        self._forced = progress is True
        terminal, notebook = sys.stderr is not None and sys.stderr.isatty(), in_notebook()
        self._wanted = (terminal or notebook) if progress is None else progress
        self._make: Callable[[], Display] = Notebook if notebook else Terminal if terminal else Lines
        self._lock = threading.Lock()
        self._shown: set[PackageHandle] = set()
        self._display: Display | None = None
        self._said: str | None = None
        self._noted: dict[str, None] = {}
        self._tell_s = TELL_S

    def update(self, handle: PackageHandle) -> None:
        """Show the news of a package. If this fails, log a warning, and show no more bars."""
        try:
            self._update(handle)
        except Exception as error:  # noqa: BLE001 - an error must not end the calling thread, which receives results
            self._wanted, self._display = False, None
            log.warning("cloudpar: progress can no longer be shown: %r", error)

    def _update(self, handle: PackageHandle) -> None:
        self._explain(handle)
        self._note(handle)
        if not self._wanted or not isinstance(handle.receiver, MapPart):
            self._tell(handle)
            return
        with self._lock:
            if handle.package.phase == "ended":
                self._end(handle)
            elif self._forced or time.monotonic() - handle.started_at > AFTER_S:
                self._show(handle)

    def _show(self, handle: PackageHandle) -> None:
        if self._display is None:
            self._display = self._make()
        self._shown.add(handle)
        progress = handle.package.progress
        waited_s = time.monotonic() - handle.started_at
        if handle.fleet is not None and not progress.executors:
            state = waiting(handle.fleet, waited_s)
        else:
            state = f"{quantity(progress.errors, 'error')}, {quantity(progress.executors, 'executor')}"
        left = remaining(progress, waited_s)
        self._display.show(handle, Bar(label(handle), progress.done, handle.package.tasks, state, left))

    def _explain(self, handle: PackageHandle) -> None:
        """Show why no more workers can start, above the bars or in the log. Repeat it only if the reason changes."""
        message = handle.fleet.message if handle.fleet is not None and not handle.ended.is_set() else None
        if message is None or message == self._said:
            return
        with self._lock:
            self._said = message
            self._print(f"no worker can start yet: {message}")

    def _note(self, handle: PackageHandle) -> None:
        """Show notices about the workers of a package above the bars or in the log, each notice only once."""
        lines = list(notices.of_set_aside(handle.id, handle.set_aside))
        waits = not (handle.ended.is_set() or handle.package.progress.executors)
        long_enough = time.monotonic() - handle.started_at >= notices.AFTER_S
        if handle.placement is not None and handle.fleet is None and waits and long_enough:
            line = notices.of_placement(handle.placement, self._endpoint)
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
            self._display.say(f"cloudpar: {text}")

    def _tell(self, handle: PackageHandle) -> None:
        """For a package without a bar, log how many workers run or are starting."""
        waited_s = time.monotonic() - handle.started_at
        with self._lock:
            if handle.package.progress.executors:
                self._tell_s = TELL_S
            elif handle.fleet is not None and not handle.ended.is_set() and waited_s >= self._tell_s:
                self._tell_s = waited_s * TELL_GROWTH
                log.warning("cloudpar: no result yet: %s", waiting(handle.fleet, waited_s))

    def _end(self, handle: PackageHandle) -> None:
        if handle not in self._shown or self._display is None:
            return
        self._shown.discard(handle)
        package, took_s = handle.package, (handle.ended_at or time.monotonic()) - handle.started_at
        state = f"{quantity(package.progress.errors, 'error')}, {span(took_s)}"
        self._display.end(handle, Bar(label(handle), package.received, package.tasks, state))
        if not self._shown:
            self._display = None


def label(handle: PackageHandle) -> str:
    """The label of a package: its function's name without enclosing functions, or its id if the function has no name.

    A label has at most LABEL_CHARS characters; the rest is left out.
    """
    name = handle.name.rpartition("<locals>.")[2] or handle.id
    return name if len(name) <= LABEL_CHARS else f"{name[: LABEL_CHARS - 3]}..."


def remaining(progress: "Progress", elapsed_s: float) -> str:
    """The remaining time of a package in words; empty while no task has ended, and when all tasks have ended.

    The function estimates the time from the mean duration of the tasks and the number of executors. If the master does
    not report one of these two, the function uses the time that has passed instead.

    >>> from cloudpar_protocol.client_messages import Progress
    >>> remaining(Progress(tasks=1000, done=400, executors=4, mean_us=2_000_000), elapsed_s=200.0)
    '5 min left'
    """
    if not progress.done or progress.done >= progress.tasks:
        return ""
    left_s = remaining_s(progress)
    if left_s is None:
        left_s = elapsed_s * (progress.tasks - progress.done) / progress.done
    return f"{span(left_s)} left"


def span(seconds: float) -> str:
    """A duration in words.

    >>> span(7.4), span(300), span(9000)
    ('7 s', '5 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def waiting(fleet: "FleetStatus", waited_s: float) -> str:
    """How many workers run, how many are starting, and how long the package has waited, in words.

    >>> from cloudpar_protocol.client_messages import FleetStatus
    >>> waiting(FleetStatus(running=0, starting=2), 40.4)
    '0 workers, 2 starting, 40 s'
    """
    return f"{quantity(fleet.running, 'worker')}, {fleet.starting} starting, {waited_s:.0f} s"
