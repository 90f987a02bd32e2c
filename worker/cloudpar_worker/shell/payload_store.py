"""Keeps task data in the agent while its lease needs it, and task code for longer if there is space."""

import struct
import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudpar_protocol.large_buffers import LARGE_BYTES
from cloudpar_protocol.payloads import SEAL_BYTES, BlobData, BlobRef, Link, Range
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.sandbox.kernel import LINUX

from .code_store import CodeStore
from .executor_process import inline_items
from .master_client import MasterClient, PayloadRefused
from .payload_file import InFile
from .verifying import damaged, seals_of, verify_items

if TYPE_CHECKING:
    import io

    from cloudpar_worker.executor.frames import Place

TABLE_BYTES: Final = 256 * 1024
"""A blob of task data ends with a table of the offsets of its items. The agent downloads the whole table, and keeps it,
if the table has at most this many bytes. If the table is larger, the agent downloads, before each download of task
data, only the part of the table that it needs for this data.
"""
TABLE_TASKS: Final = 128 * 1024
"""The most tasks whose offsets the agent downloads at a time. The client chooses the number of tasks of a chunk.
Without this bound, the offsets of a chunk of millions of tasks would take hundreds of megabytes here.
"""
TOO_LARGE_TASKS: Final = 1_000
"""The most tasks that one TooLarge reports."""
TABLES: Final = 32
"""How many tables of offsets the agent keeps. A further table replaces the oldest table."""
SEGMENT_BYTES: Final = 16 * 1024 * 1024
"""The most bytes of task data that the agent downloads at a time. It downloads a larger item alone."""


TableKey = tuple[str, int, int, int, bool]
"""A blob (its key, its offset and its size), the number of items in it, and whether they have seals.

The client chooses all of these, and may name one blob in several packages, each with another number of tasks. Without
the number, the second of these packages would use the table of the first.
"""


class _Table(NamedTuple):
    """The positions of items in their blob: the offset of each item, and the end of the last item.

    `seals` contains the seals of the items, one after the other; it is empty if the package is not sealed.
    """

    offsets: tuple[int, ...]
    seals: bytes


class TooLarge(Exception):
    """For each of `tasks`, the code and the task's data are together larger than the memory limit of an executor."""

    def __init__(self, tasks: Range, payload_bytes: int) -> None:
        super().__init__(tasks, payload_bytes)
        self.tasks = tasks
        self.payload_bytes = payload_bytes


class PayloadStore:
    """The payloads of leases. The downloading threads add payloads; the main thread reads and drops them.

    Args:
        client: Downloads payloads.
        memory_bytes: The memory limit of an executor.
    """

    def __init__(self, client: MasterClient, memory_bytes: int) -> None:
        self._client = client
        self._memory_bytes = memory_bytes
        self.codes = CodeStore(client)
        self._tables: OrderedDict[TableKey, _Table] = OrderedDict()
        self._segments: dict[str, dict[Range, list[memoryview] | list[Place]]] = {}
        self._files: dict[str, io.FileIO] = {}
        """The open files of leases whose segments contain places in the file instead of data."""
        self._lock = threading.Lock()

    def items(self, lease: Lease, start: int, end: int) -> Sequence[bytes | memoryview] | InFile | None:
        """Return the data of the tasks [start, end); None for a range. Data in a blob must have been downloaded."""
        if not isinstance(lease.data, BlobData):
            return inline_items(lease, start, end)
        items: list[memoryview | Place] = []
        for segment, held in sorted(self._segments[lease.lease_id].items()):
            first, last = max(start, segment[0]), min(end, segment[1])
            if first < last:
                items += held[first - segment[0] : last - segment[0]]
        file = self._files.get(lease.lease_id)
        return items if file is None else InFile(file, items)  # type: ignore[return-value,arg-type]

    def discard(self, lease_id: str, segment: Range) -> None:
        """Drop a segment of a lease's data. A segment is the data of one download, named by the range of its tasks."""
        self._segments.get(lease_id, {}).pop(segment, None)

    def forget(self, lease_id: str) -> None:
        """Drop all data of a lease."""
        self._segments.pop(lease_id, None)
        file = self._files.pop(lease_id, None)
        if file is not None:
            file.close()

    def fetch(self, lease: Lease, tasks: Range) -> tuple[Range, int]:
        """Download the code and, in order, the data of as many of `tasks` as one download can bring.

        Code that is already here is not downloaded again. Return the tasks whose data is now here, and the mean size of
        an item. If the data is not in a blob, return all tasks of the lease, and 0.

        Raises:
            PayloadRefused: The payload cannot be downloaded, is damaged, or (SealBroken) does not match its seal.
            TooLarge: An executor cannot hold the payload of the first of these tasks, so the agent does not download
                the payload.
            Stopped: `hang_up` of the client was called.
        """
        code_bytes = lease.code.blob.size if lease.code.blob else 0
        if code_bytes > self._memory_bytes:
            raise TooLarge((tasks[0], min(tasks[1], tasks[0] + TOO_LARGE_TASKS)), code_bytes)
        self.codes.fetch(lease)
        if not isinstance(lease.data, BlobData):
            return (lease.start, lease.end), 0
        link = lease.data_link
        if link is None:
            raise PayloadRefused("the lease has no link for its data")
        tasks = tasks[0], min(tasks[1], tasks[0] + TABLE_TASKS)
        offsets, seals = self._offsets(link, lease, lease.data.blob, tasks)
        first_bytes = code_bytes + offsets[1] - offsets[0]
        if first_bytes > self._memory_bytes:
            raise TooLarge((tasks[0], tasks[0] + 1), first_bytes)
        last = 1
        while last < len(offsets) - 1 and offsets[last + 1] - offsets[0] <= SEGMENT_BYTES:
            last += 1
        segment, size = (tasks[0], tasks[0] + last), offsets[last] - offsets[0]
        if self._open(lease, link, lease.data.blob):
            places = list(pairwise(offsets[: last + 1]))
            with self._lock:
                self._segments.setdefault(lease.lease_id, {})[segment] = places
            return segment, size // last
        body = memoryview(self._client.get(link, offsets[0], offsets[last]))
        items = [body[offsets[i] - offsets[0] : offsets[i + 1] - offsets[0]] for i in range(last)]
        verify_items(lease, tasks[0], items, seals[: SEAL_BYTES * last])
        with self._lock:
            self._segments.setdefault(lease.lease_id, {})[segment] = items
        return segment, size // last

    def _open(self, lease: Lease, link: Link, blob: BlobRef) -> bool:
        """Open the file of a lease's data, if executors are to map it. Return whether it is open now.

        Executors map files of a pool's own master, which have no seals, if a usual item is large.
        """
        if lease.lease_id in self._files:
            return True
        is_large = blob.size >= LARGE_BYTES * lease.tasks
        if not (LINUX and is_large and lease.codec == "pickle" and seals_of(lease) is None):
            return False
        file = self._client.open(link, blob)
        if file is not None:
            with self._lock:
                if self._files.setdefault(lease.lease_id, file) is not file:
                    file.close()  # another thread has opened it meanwhile
        return file is not None

    def _offsets(self, link: Link, lease: Lease, blob: BlobRef, tasks: Range) -> _Table:
        """Return the positions of the items of `tasks` in their blob, and the seals of these items."""
        n, seal_bytes = lease.tasks, 0 if lease.seal is None else SEAL_BYTES
        start = blob.offset + blob.size - 8 * (n + 1)
        first, end = tasks
        items_end = start - seal_bytes * n
        if items_end < blob.offset:
            raise damaged(lease, f"its data is too short for {n} tasks")
        if 8 * (n + 1) > TABLE_BYTES:
            offsets = _unpack(self._client.get(link, start + 8 * first, start + 8 * (end + 1)), items_end, lease)
            seals = items_end + seal_bytes * first, items_end + seal_bytes * end
            return _Table(offsets, bytes(self._client.get(link, *seals)) if seal_bytes else b"")
        key = blob.key, blob.offset, blob.size, n, bool(seal_bytes)
        table = self._tables.get(key)
        if table is None:
            both = self._client.get(link, items_end, start + 8 * (n + 1))
            offsets_of_all = _unpack(both[seal_bytes * n :], items_end, lease)
            table = self._tables[key] = _Table(offsets_of_all, bytes(both[: seal_bytes * n]))
            if len(self._tables) > TABLES:
                self._tables.popitem(last=False)
        return _Table(table.offsets[first : end + 1], table.seals[seal_bytes * first : seal_bytes * end])


def _unpack(table: bytes | memoryview, items_end: int, lease: Lease) -> tuple[int, ...]:
    offsets = struct.unpack(f"<{len(table) // 8}Q", table)
    if offsets[-1] > items_end or any(after < before for before, after in pairwise(offsets)):
        raise damaged(lease, "the table of its data is damaged")
    return offsets
