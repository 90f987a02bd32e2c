"""Finds the processes that executors started. To save time, the agent looks up each process's parent only once."""

import os
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from cloudpar_worker.sandbox.kernel import LINUX
from cloudpar_worker.sandbox.processes import Process, process_of
from cloudpar_worker.sandbox.shared_memory import ENTRY_BYTES, SHARED_MEMORY, used_bytes

ENTRIES: Final = 1_000
"""The agent examines at most this many files of shared memory in each round of measurements, because task code may make
a million files. The memory of further files counts for each executor, as if each executor owned these files.
"""
_LOAD: Final = Path("/proc/loadavg")
"""The last word of this file is the id of the newest process."""


class ProcessTree:
    """Finds out which process belongs to which executor of one agent."""

    def __init__(self) -> None:
        self._newest = ""
        self._executor_by_uid: dict[int, int] = {}
        """For each user id other than the agent's: the process id of the executor that has this user id."""
        self._executor_of: dict[int, int] = {}
        """By process id: the process id of the executor that started the process; 0 if no executor did."""
        self._shared = 0
        """An upper bound of all shared memory at the last round of measurements, in bytes."""
        self._shared_of: Counter[int] = Counter()
        """The part of `_shared` that visibly belongs to a user, by user id."""

    def descendants(self, executors: Collection[int]) -> Mapping[int, list[int]]:
        """Return the processes that executors have started, by the executor's process id. Empty except on Linux."""
        newest = _LOAD.read_text().split()[-1] if LINUX else ""
        if newest != self._newest:
            self._newest = newest
            self._executor_by_uid = _executor_by_uid(executors)
            there = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - pathlib is slower
            self._executor_of = {pid: known for pid, known in self._executor_of.items() if pid in there}
            for pid in there - self._executor_of.keys():
                self._find(pid, executors)
        self._shared, self._shared_of = _shared_memory() if self._executor_by_uid else (0, Counter())
        found: dict[int, list[int]] = {}
        for pid, executor in self._executor_of.items():
            if executor:
                found.setdefault(executor, []).append(pid)
        return found

    def _find(self, pid: int, executors: Collection[int]) -> None:
        ancestors: list[int] = []
        while pid and pid not in executors and pid not in self._executor_of:
            ancestors.append(pid)
            process = process_of(pid)
            pid = self._executor_by_uid.get(process.user, process.parent) if process else 0
        executor = pid if pid in executors else self._executor_of.get(pid, 0)
        self._executor_of.update(dict.fromkeys(ancestors, executor))

    def most_bytes(self, executor: int, processes: Collection[Process], own_shared_bytes: int | None = None) -> int:
        """Return an upper bound of the memory of these processes of an executor, plus the executor's shared memory.

        Pages of files do not count.

        A page that several of these processes share counts once for each of them.

        Args:
            executor: The executor's process id.
            processes: The processes that it has started.
            own_shared_bytes: The memory of the executor's own file system for shared memory; None if it has none.
        """
        shared_bytes = self._shared_bytes(executor) if own_shared_bytes is None else own_shared_bytes
        return sum(each.private_bytes for each in processes) + shared_bytes

    def _shared_bytes(self, executor: int) -> int:
        """Return an upper bound of the executor's files in shared memory; 0 if the executor has no user id of its own.

        Some of these files have no name, and others are in folders that the agent may not read. So all shared memory
        that does not visibly belong to another user counts.
        """
        user = next((user for user, its in self._executor_by_uid.items() if its == executor), None)
        if user is None:
            return 0
        return max(self._shared - self._shared_of.total() + self._shared_of[user], 0)


def _shared_memory() -> tuple[int, Counter[int]]:
    """Return an upper bound of all shared memory, and, by user id, the bytes that visibly belong to the user."""
    of: Counter[int] = Counter()
    with os.scandir(SHARED_MEMORY) as entries:
        for entry in islice(entries, ENTRIES):
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                of[status.st_uid] += ENTRY_BYTES + 512 * status.st_blocks
    return used_bytes(SHARED_MEMORY), of


def living(pids: Collection[int]) -> list[Process]:
    """Return the processes that have not ended. A process that has ended, but is still listed, has no memory."""
    return [each for each in map(process_of, pids) if each and each.private_bytes]


def _executor_by_uid(executors: Collection[int]) -> dict[int, int]:
    users: dict[int, int] = {}
    for executor in executors:
        with suppress(OSError):
            users[os.stat(f"/proc/{executor}").st_uid] = executor  # noqa: PTH116 - called often, and pathlib is slower
    users.pop(os.geteuid(), None)
    return users
