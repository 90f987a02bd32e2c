"""What `map` returns: an iterator over results that come in while it is read."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from ._client.failures import raisable
from ._client.interruption import interrupt
from ._client.package_handle import PackageHandle
from ._client.result_buffer import MapPart, ResultBuffer
from ._client.session import Session
from ._formatting.quantity import quantity
from ._formatting.tracebacks import shorten
from .errors import CloudparError

T_co = TypeVar("T_co", covariant=True)

StartNext = Callable[[ResultBuffer, int, int | None], MapPart | None]
"""Start a package with the next values: which buffer, the number of its first task, how many at most."""


class MapResults(Iterator[T_co]):
    """An iterator over the results of a map, in task order. It may be read while tasks are still running.

    A task's exception is raised where its value would have come, or returned there with `return_exceptions`. Either way
    each task has exactly one place: `next` goes on with the following task. A map that is dropped half read is
    cancelled.
    """

    def __init__(
        self,
        session: Session,
        start_next: StartNext,
        *,
        buffersize: int | None = None,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> None:
        self.raised = False
        self._return_exceptions = return_exceptions
        self._start_error: Exception | None = None
        self._session = session
        self._start_next = start_next
        self._buffersize = buffersize
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._timeout = timeout
        self._buffer = ResultBuffer(session.read)
        self._parts: list[MapPart] = []
        self._package_ids: list[str] = []
        self._index = 0
        self._given = 0
        self._more = True
        self._touched = False
        self._refill()

    def _refill(self) -> None:
        """Start the next package, once a part of the buffer is free.

        That is a quarter, so that executors have tasks while the reader works. It is half if the tasks are known to be
        short: then packages cost more than the tasks, and half as many are better.

        Raises:
            Exception: The first package cannot be started. A later one's error waits until what was started before is
                read, since its place is behind that.
        """
        if not self._more:
            return
        limit = self._buffersize
        if limit is not None:
            free = limit - sum([part.unread for part in self._parts])
            if free < max(1, limit // 4) or (free < limit // 2 and self._are_short(limit)):
                return
            limit = free
        try:
            part = self._start_next(self._buffer, self._given, limit)
        except Exception as error:
            self._more = False
            if not self._given:
                raise
            self._start_error = error
            return
        self._more = part is not None and limit is not None and part.n == limit
        if part is not None:
            self._parts.append(part)
            self._given += part.n
            if part.handle is not None:
                self._package_ids.append(part.handle.id)

    def _are_short(self, tasks: int) -> bool:
        """Whether as many tasks as the buffer holds are so little work that a package costs more."""
        handle = self._parts[-1].handle if self._parts else None
        return handle is not None and self._session.are_short(handle, tasks)

    @property
    def package_id(self) -> str | None:
        """The package that these results are of (the last one started, with `buffersize`); None if there was no task.

        `Pool.attach` takes it, also in another process.
        """
        return self._package_ids[-1] if self._package_ids else None

    def __repr__(self) -> str:
        tasks = quantity(self._given, "task") + (" so far" if self._more else "")
        return f"<{type(self).__name__} of {tasks}{f', package {self.package_id}' if self.package_id else ''}>"

    def __iter__(self) -> "MapResults[T_co]":
        return self

    def __next__(self) -> T_co:
        __tracebackhide__ = True
        self._touched, self.raised = True, False
        self._drop_read()
        self._refill()
        if not self._parts:
            return self._end()
        try:
            index, value, error = self._take()
        except KeyboardInterrupt:
            interrupt(self._session, self.under_way())
            raise
        self._index += 1
        if error is None:
            return value  # type: ignore[no-any-return]
        try:
            if self._return_exceptions:
                return error  # type: ignore[return-value]  # the overloads of Pool.map say so
            self.raised = True
            raise raisable(error, index)
        finally:
            del error  # no cycle through this frame

    def _end(self) -> NoReturn:
        __tracebackhide__ = True
        error, self._start_error = self._start_error, None
        if error is None:
            raise StopIteration
        self.raised = True
        if isinstance(error, CloudparError):
            shorten(error)
        raise error

    def _drop_read(self) -> None:
        while self._parts and not self._parts[0].unread:
            part = self._parts.pop(0)
            self._index = part.base + part.n

    def _take(self) -> tuple[int, Any, BaseException | None]:
        return self._index, *self._buffer.take(self._index, self._parts[0], self._deadline)

    def under_way(self) -> list[PackageHandle]:
        """Its packages that have not been read to the end."""
        return [part.handle for part in self._parts if part.handle is not None and part.unread]

    def cancel(self) -> None:
        """Stop what runs of it, and drop the rest. Reading on raises TaskCancelled."""
        self._more = False
        for handle in self.under_way():
            if not handle.ended.is_set():
                handle.cancelled()
                self._session.cancel(handle.id)

    def close(self) -> None:
        """Read no more of it: what still runs is cancelled, in the background."""
        self._more = False
        for handle in self.under_way():
            self._session.read(handle)
        self._parts.clear()

    def detach(self) -> str:
        """Let the package go on when this process ends. Nothing more can be read here.

        Returns:
            The package id, for `Pool.attach` in another process.

        Raises:
            ValueError: There is nothing to detach: no task, or (with `buffersize`) values that are not sent yet.
        """
        if self.package_id is None or self._more or len(self._package_ids) > 1:
            raise ValueError(
                "only a map whose tasks are all in one package can be detached: it needs a task, and no buffersize"
            )
        for handle in self.under_way():
            self._session.forget(handle)
        self._parts.clear()
        return self.package_id

    def __del__(self) -> None:
        if getattr(self, "_touched", False):
            self.close()
        else:  # called for its effect only
            for handle in self.under_way() if hasattr(self, "_parts") else ():
                self._session.drop(handle)


class UnorderedResults(MapResults[T_co]):
    """An iterator over the results of a map, in the order in which they come in."""

    def _take(self) -> tuple[int, Any, BaseException | None]:
        return self._buffer.take_any(self._parts, self._deadline)

    def indexed(self) -> Iterator[tuple[int, Any]]:
        """The remaining results, each with its task's index; ends with the first error."""
        while self._parts:
            try:
                index, value, error = self._take()
            except KeyboardInterrupt:
                interrupt(self._session, self.under_way())
                raise
            if error is not None:
                raise raisable(error, index)
            yield index, value
            self._drop_read()
