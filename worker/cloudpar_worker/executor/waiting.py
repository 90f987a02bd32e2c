"""How an executor tells the agent that its task waits for tasks of its own.

A mark goes through the channel of results, in order with them: so the agent knows of which task it is.
"""

import os
import threading
from collections.abc import Callable

from .frames import GOES_ON, WAITS


class TaskWaits:
    """What the task that runs waits for: the executor's side of cloudpar_protocol.nesting.

    Args:
        send: Writes a frame to the agent; for any thread.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.depth = 0
        self._send = send
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._awaited: set[object] = set()

    def begins_to_wait(self, package: object) -> None:
        """See the protocol."""
        if os.getpid() != self._pid:
            return  # a process that the task has forked: its frames would mix with the executor's
        with self._lock:
            self._awaited.add(package)
            self._send(WAITS)  # each time: an earlier task may have left a package here that is still under way

    def ends_to_wait(self, package: object) -> None:
        """See the protocol."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if package in self._awaited:
                self._awaited.discard(package)
                if not self._awaited:
                    self._send(GOES_ON)

    def task_ended(self) -> None:
        """What it left under way, nobody waits for."""
        if self._awaited:
            with self._lock:
                self._awaited.clear()
