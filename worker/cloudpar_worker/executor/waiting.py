"""Tells the agent that the executor's task waits for tasks of its own.

The executor sends marks (see `frames`) through the same channel as results and in order with them. So the agent knows
to which task a mark belongs.
"""

import os
import threading
from collections.abc import Callable, MutableMapping
from typing import Final

from cloudpar_protocol.nesting import OwnPool

from .frames import GOES_ON, WAITS

OWN_POOL: Final = "CLOUDPAR_OWN_POOL"
"""The zygote's environment variable that holds the endpoint and the token of the pool that started the agent."""


def take_own_pool(environment: MutableMapping[str, str]) -> OwnPool | None:
    """Remove the pool from the environment and return it; None if the environment names no pool.

    Without the removal, a program that a task starts could join the pool. Such a program cannot tell the executor that
    it waits. So all executors might wait for tasks, and no executor would be left to run these tasks.
    """
    endpoint, _, token = environment.pop(OWN_POOL, "").partition(" ")
    return OwnPool(endpoint, token) if token else None


class TaskWaits:
    """The packages for which the running task waits: the executor's side of cloudpar_protocol.nesting.

    Args:
        send: Writes a frame to the agent. Any thread may call this function.
        pool: The pool that started this worker, which `Pool()` in a task joins; None if no pool started it.
    """

    def __init__(self, send: Callable[[bytes], None], pool: OwnPool | None = None) -> None:
        self.depth = 0
        self._pool = pool
        self._send = send
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._awaited: set[object] = set()

    @property
    def pool(self) -> OwnPool | None:
        """The pool that started this worker; None in a process that the task has forked."""
        return self._pool if os.getpid() == self._pid else None

    def begins_to_wait(self, package: object) -> None:
        """Tell the agent that the running task waits for a package."""
        if os.getpid() != self._pid:
            return  # frames of a process that the task has forked would mix with the executor's
        with self._lock:
            self._awaited.add(package)
            self._send(WAITS)  # even if the task waits already: the earlier mark may belong to a task that has ended

    def ends_to_wait(self, package: object) -> None:
        """Record that the task no longer waits for this package; tell the agent if the task waits for no other."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if package in self._awaited:
                self._awaited.discard(package)
                if not self._awaited:
                    self._send(GOES_ON)

    def task_ended(self) -> None:
        """Forget all packages for which the last task waited: the next task does not wait for them."""
        if self._awaited:
            with self._lock:
                self._awaited.clear()
