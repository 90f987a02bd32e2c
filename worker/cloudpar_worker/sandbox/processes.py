"""The processes of this machine, or of the container in which this process runs."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

_TABLES: Final = b"VmPTE"
_FIELDS: Final = re.compile(rb"^(PPid|Uid|Threads|FDSize|RssAnon|RssShmem|VmSwap|VmPTE):\s*(\d+)", re.MULTILINE)
_PRIVATE: Final = (b"RssAnon", b"RssShmem", b"VmSwap", _TABLES)


class Process(NamedTuple):
    """Facts about a process that every user may read."""

    pid: int
    parent: int
    user: int
    threads: int
    descriptors: int
    """For how many descriptors the process has room; this is at least the number of its open descriptors."""
    private_bytes: int
    """The memory of the process without pages of files, but with pages that it still shares with its parent after a
    fork, and with its page tables. It is 0 if the process has ended and is still listed.
    """
    table_bytes: int
    """The memory of the process's page tables. A process that reads one byte in each of many pages that it never writes
    has large page tables, and no other memory.
    """
    thread: int
    """The id of a thread that shows the memory of the process: the first thread (which has the id of the process), or
    another thread if the first has ended.
    """


def processes() -> Iterator[Process]:
    """Yield all processes that this user may see. Linux only."""
    for name in os.listdir("/proc"):
        process = process_of(int(name)) if name.isdigit() else None
        if process is not None:
            yield process


def process_of(pid: int) -> Process | None:
    """Return the facts about one process; None if it has ended, or if the system hides it from this user (hidepid)."""
    status = _status(pid)
    if status is None:
        return None
    parent, user, threads = int(status[b"PPid"]), int(status[b"Uid"]), int(status.get(b"Threads", 0))
    thread = pid
    if threads > 1 and not _private_bytes(status):
        # The first thread of the process has ended, and others run. The kernel shows such a process as ended, without
        # memory and descriptors. Without this search for a running thread, task code could compute in such a process
        # with neither a charge nor a limit.
        thread, status = next(_running_threads(pid), (pid, status))
    private, tables = _private_bytes(status), _bytes(status, _TABLES)
    return Process(pid, parent, user, threads, int(status.get(b"FDSize", 0)), private, tables, thread)


def _running_threads(pid: int) -> Iterator[tuple[int, dict[bytes, bytes]]]:
    """Yield the ids of a process's threads that have not ended, each with the fields of its status in /proc."""
    with suppress(OSError):  # the process has ended
        for name in os.listdir(f"/proc/{pid}/task"):
            status = _status(int(name)) or {}
            if _private_bytes(status):
                yield int(name), status


def _status(thread: int) -> dict[bytes, bytes] | None:
    try:
        # The file is read as bytes, because a process can choose its name: a name that is not UTF-8 would raise an
        # exception here and end the agent. The name is on the first line, so text in the name that looks like a field
        # cannot replace the field.
        with open(f"/proc/{thread}/status", "rb") as file:
            return dict(_FIELDS.findall(file.read()))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _private_bytes(status: dict[bytes, bytes]) -> int:
    return sum(_bytes(status, part) for part in _PRIVATE)


def _bytes(status: dict[bytes, bytes], part: bytes) -> int:
    return int(status.get(part, b"0")) << 10
