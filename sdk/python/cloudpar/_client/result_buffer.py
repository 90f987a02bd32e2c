"""Keeps results of one map between the thread that receives them and the thread that reads them."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from cloudpar.errors import CloudparError
from cloudpar_protocol.payloads import TaskResult

from .package_handle import PackageHandle


class MapPart:
    """The part of a map that one package runs: the tasks [base, base + n).

    This object receives the results of these tasks for the buffer.

    A part without a package represents a value that could not be sent. The `failure` of the part is the value's result.
    """

    def __init__(self, buffer: "ResultBuffer", base: int, n: int) -> None:
        self.base = base
        self.n = n
        self.unread = n
        self.handle: PackageHandle | None = None
        self.failure: CloudparError | None = None
        self.ended = False
        self._arrived = bytearray(n)
        self._buffer = buffer

    def started(self, handle: PackageHandle) -> None:
        """Record that the master has accepted the package."""
        self.handle = handle

    def receive(self, results: Sequence[TaskResult]) -> None:
        """Keep results until they are read."""
        for result in results:
            self._arrived[result.index] = 1
        self._buffer.put(self, results)

    def end(self, failure: CloudparError | None) -> None:
        """Record that no more results will come."""
        self._buffer.end(self, failure)

    def lost(self, start: int = 0) -> int | None:
        """Return the first task, at `start` or later, that will never have a result; None if no such task is known."""
        if not self.ended or self.failure is None:
            return None
        index = self._arrived.find(0, start)
        return None if index < 0 else index

    def give_up(self, index: int) -> CloudparError:
        """Count a lost task as received; return the exception that says why it has no result."""
        self._arrived[index] = 1
        if self.handle is not None:
            return self.handle.lost_task(index)
        if self.failure is None:
            raise AssertionError("a task is lost only with its package, or because it could not be sent")
        return self.failure

    def outcome(self, result: TaskResult) -> tuple[Any, BaseException | None]:
        """Decode a result: return its value and None, or None and its exception."""
        if self.handle is None:
            raise AssertionError("a result before its package")
        return self.handle.outcome(result)


class ResultBuffer:
    """Keeps received results, by their index in the whole map, until they are read.

    Several threads may add results; only one thread at a time may read them. The buffer calls `read` with a package
    when all results of the package have been read.
    """

    def __init__(self, read: Callable[[PackageHandle], None]) -> None:
        self._read = read
        self._condition = threading.Condition()
        self._arrived: dict[int, tuple[MapPart, TaskResult]] = {}

    def put(self, part: MapPart, results: Sequence[TaskResult]) -> None:
        """Store results and wake the reader."""
        base = part.base
        with self._condition:
            for result in results:
                self._arrived[base + result.index] = part, result
            self._condition.notify_all()

    def end(self, part: MapPart, failure: CloudparError | None) -> None:
        """Record that a part gets no more results, and wake the reader."""
        with self._condition:
            part.failure, part.ended = failure, True
            self._condition.notify_all()

    def take(self, index: int, part: MapPart, deadline: float | None) -> tuple[Any, BaseException | None]:
        """Wait for the result of one task and remove it from the buffer.

        Returns:
            The task's value and None, or None and its exception. If the task will never have a result, the exception is
            a copy of the package's failure.

        Raises:
            TimeoutError: The result did not arrive before the deadline (of the monotonic clock).
        """
        found = self._arrived.pop(index, None)
        if found is None:
            with self._condition:
                while (found := self._arrived.pop(index, None)) is None:
                    if part.lost(index - part.base) == index - part.base:
                        return self._give_up(part, index - part.base)
                    self._wait(deadline)
        return self._open(*found)

    def take_any(self, parts: Sequence[MapPart], deadline: float | None) -> tuple[int, Any, BaseException | None]:
        """Wait until the buffer has a result, and remove the result that arrived first.

        If the buffer has no result, but a task of `parts` will never have a result, return the failure of this task.

        Returns:
            The task's index in the map, followed by what `take` returns.

        Raises:
            TimeoutError: No result arrived before the deadline (of the monotonic clock).
        """
        with self._condition:
            while not self._arrived:
                for part in parts:
                    lost = part.lost()
                    if lost is not None:
                        return part.base + lost, *self._give_up(part, lost)
                self._wait(deadline)
            index = next(iter(self._arrived))
            found = self._arrived.pop(index)
        return index, *self._open(*found)

    def _give_up(self, part: MapPart, index: int) -> tuple[None, CloudparError]:
        failure = part.give_up(index)
        self._count_read(part)
        return None, failure

    def _wait(self, deadline: float | None) -> None:
        timeout_s = None if deadline is None else deadline - time.monotonic()
        if timeout_s is not None and timeout_s <= 0:
            raise TimeoutError("the result of a task did not come within the timeout of map")
        self._condition.wait(timeout_s)

    def _open(self, part: MapPart, result: TaskResult) -> tuple[Any, BaseException | None]:
        value, error = part.outcome(result)
        self._count_read(part)
        return value, error

    def _count_read(self, part: MapPart) -> None:
        part.unread -= 1
        if not part.unread and part.handle is not None:
            self._read(part.handle)
