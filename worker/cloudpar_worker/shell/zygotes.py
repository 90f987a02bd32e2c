"""The zygotes of an agent: one for each version of Python in use."""

import contextlib
from collections import Counter
from collections.abc import Collection, Sequence
from selectors import EVENT_READ, BaseSelector
from typing import Final, Protocol

from cloudpar_worker.sandbox.confinement import Confinement
from cloudpar_worker.zygote.messages import SPAWN

from .settings import WorkerSettings
from .zygote_process import ZygoteProcess

FAILURES: Final = 3
"""The agent stops using a version of Python after this many of its zygotes have ended in a row without a message. The
agent never stops using its own version. A zygote that ends because it is idle does not count.
"""
IDLE_US: Final = 60_000_000
"""A zygote, except the first, ends when it has had no executor for this time, in microseconds. A zygote uses about 20
MB.
"""


class ZygoteListener(Protocol):
    """Gets the messages of zygotes, and the news that a zygote has ended."""

    def on_message(self, operation: bytes, executor_id: int, figure: int) -> None:
        """Handle a message of a zygote."""

    def on_exit(self, python: str, *, for_good: bool) -> None:
        """Handle the end of a zygote and its executors. With `for_good` the version is not used any more (FAILURES)."""


class Zygotes:
    """The zygotes of one agent, one for each version of Python in use.

    The zygote of the agent's own version starts at once and is not ended when it is idle. The others start when an
    executor needs them, and end when they have been idle for IDLE_US.

    Raises:
        OSError: The first zygote cannot be started.
    """

    def __init__(self, settings: WorkerSettings, confinement: Confinement | None = None) -> None:
        self._settings = settings
        self._confinement = confinement
        self._first = next(iter(settings.interpreters))
        self._running = {self._first: self._start(self._first)}
        self._failures: Counter[str] = Counter()
        self._idle_at_us: dict[str, int] = {}
        self._selectors: Sequence[BaseSelector] = ()

    def listen(self, listener: ZygoteListener, selectors: Sequence[BaseSelector]) -> None:
        """Register the sockets of all zygotes, also of later ones, with each selector.

        The data of each key is a function. Call this function with the event mask when the selector reports the socket.
        The function passes the zygote's messages, or the news that the zygote ended, to `listener`.
        """
        self._listener, self._selectors = listener, selectors
        for python in self._running:
            self._register(python)

    def spawn(self, python: str, executor_id: int, descriptors: list[int]) -> None:
        """Request an executor for a version of Python; start a zygote of this version if none runs.

        Raises:
            OSError: The zygote cannot be started, or has just ended.
        """
        if python not in self._running:
            self._running[python] = self._start(python)
            self._register(python)
        self._idle_at_us.pop(python, None)
        self._running[python].send(SPAWN, executor_id, descriptors)

    def send(self, python: str, operation: bytes, executor_id: int) -> None:
        """Request an operation for an executor.

        KILL also kills the executor's process group. MEASURE, WEIGH, LIGHTEN and RESTORE also apply to all processes
        that the executor started.
        """
        # If the zygote is gone, its executors are gone too, and `on_exit` reports that.
        if python in self._running:
            with contextlib.suppress(OSError):
                self._running[python].send(operation, executor_id, [])

    def end_idle(self, used: Collection[str], now_us: int) -> None:
        """End each zygote that has had no executor for IDLE_US, except the first zygote.

        `used` contains the versions with executors.
        """
        for python in list(self._running):
            if python in used or python == self._first:
                self._idle_at_us.pop(python, None)
            elif now_us - self._idle_at_us.setdefault(python, now_us) >= IDLE_US:
                self._end(python)

    def close(self) -> None:
        """End all zygotes, one after the other, and wait at most ENDS_S for each."""
        for python in list(self._running):
            self._end(python)

    def _start(self, python: str) -> ZygoteProcess:
        return ZygoteProcess(self._settings.interpreters[python], self._settings, self._confinement)

    def _register(self, python: str) -> None:
        for selector in self._selectors:
            selector.register(self._running[python].socket, EVENT_READ, lambda _events: self._on_readable(python))

    def _on_readable(self, python: str) -> None:
        try:
            messages = list(self._running[python].receive())
        except (EOFError, ConnectionError):
            self._end(python)
            self._failures[python] += 1
            self._listener.on_exit(python, for_good=python != self._first and self._failures[python] >= FAILURES)
            return
        self._failures[python] = -1  # the zygote has worked, so its own end does not count
        for message in messages:
            self._listener.on_message(*message)

    def _end(self, python: str) -> None:
        zygote = self._running.pop(python)
        self._idle_at_us.pop(python, None)
        for selector in self._selectors:
            selector.unregister(zygote.socket)
        zygote.close()
