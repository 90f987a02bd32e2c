"""`MapResults`: the iterator over results that `map` returns."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ._client.failures import raisable
from ._formatting.quantity import quantity
from ._formatting.tracebacks import shorten
from .errors import CloudparError

if TYPE_CHECKING:
    from ._client.package_feed import PackageFeed
    from ._client.package_handle import PackageHandle

T_co = TypeVar("T_co", covariant=True)


class MapResults(Iterator[T_co]):
    """An iterator over the results of a map, in task order. The program can read it while tasks are still running.

    Each task has exactly one result. If a task failed, `next` raises the task's exception, and the following call
    continues with the next task. With `return_exceptions`, `next` returns the exception instead.

    If this object is garbage-collected after some of its results were read, the unfinished tasks are cancelled. If no
    result was read, all tasks that were sent to the master run to their end.
    """

    def __init__(self, feed: "PackageFeed") -> None:
        self.raised = False
        self._feed = feed
        self._session = feed.session
        self._index = 0
        self._touched = False

    @property
    def package_id(self) -> str | None:
        """The id of the package of these results; None if there was no task.

        With `buffersize`, it is the id of the package that was started last. Pass the id to `Pool.attach`, in this
        process or in another one. The master deletes the package soon after this iterator has given its last result.
        """
        return self._feed.package_ids[-1] if self._feed.package_ids else None

    def __repr__(self) -> str:
        tasks = quantity(self._feed.given, "task") + (" so far" if self._feed.more else "")
        return f"<{type(self).__name__} of {tasks}{f', package {self.package_id}' if self.package_id else ''}>"

    def __len__(self) -> int:
        """The number of tasks of the map, so that progress bars such as tqdm know their total.

        Raises:
            TypeError: With `buffersize`, the iterables were not read to their end yet.

        Example:
            >>> from cloudpar import Pool
            >>> with Pool(workers=1) as pool:
            ...     len(pool.map(abs, range(-5, 0)))
            5
        """
        if self._feed.more:
            raise TypeError("with buffersize, a map has no len() until its iterables were read to their end")
        return self._feed.given

    def __bool__(self) -> bool:
        return True  # as for other iterators, also for a map without tasks

    def __iter__(self) -> "MapResults[T_co]":
        return self

    def __next__(self) -> T_co:
        __tracebackhide__ = True
        self._touched, self.raised = True, False
        self._drop_read()
        self._feed.refill()
        if not self._feed.parts:
            return self._end()
        try:
            index, value, error = self._take()
        except KeyboardInterrupt:
            self._session.cancellations.interrupt(self.under_way())
            raise
        self._index += 1
        if error is None:
            return value  # type: ignore[no-any-return]
        try:
            if self._feed.options.return_exceptions:
                return error  # type: ignore[return-value]  # the overloads of Pool.map say so
            self.raised = True
            raise raisable(error, index)
        finally:
            del error  # otherwise the exception and this frame would keep each other alive

    def _end(self) -> NoReturn:
        __tracebackhide__ = True
        error, self._feed.error = self._feed.error, None
        if error is None:
            raise StopIteration
        self.raised = True
        if isinstance(error, CloudparError):
            shorten(error)
        raise error

    def _drop_read(self) -> None:
        while self._feed.parts and not self._feed.parts[0].unread:
            part = self._feed.parts.pop(0)
            self._index = part.base + part.n

    def _take(self) -> tuple[int, Any, BaseException | None]:
        return self._index, *self._feed.buffer.take(self._index, self._feed.parts[0], self._feed.deadline)

    def under_way(self) -> "list[PackageHandle]":
        """Return the packages of this map that have unread results."""
        return self._feed.under_way()

    def cancel(self) -> None:
        """Stop the running tasks and drop the queued tasks. For a task without a result, `next` raises TaskCancelled.

        Values that were not sent yet because of `buffersize` are never sent.

        Raises:
            CloudparError: The master refuses or does not answer.
        """
        self._feed.more = False
        for handle in self.under_way():
            if not handle.ended.is_set():
                handle.cancelled()
                self._session.cancellations.cancel(handle.id)

    def close(self) -> None:
        """Stop reading: this iterator ends, and tasks that have not finished are cancelled in the background."""
        self._feed.more = False
        for handle in self.under_way():
            self._session.read(handle)
        self._feed.parts.clear()

    def detach(self) -> str:
        """Let the package continue when this process ends. After this call the iterator gives no more results.

        If the pool started its own master, the package does not continue: it ends with the pool.

        Returns:
            The package id, for `Pool.attach` in another process.

        Raises:
            ValueError: There is no task. Or, with `buffersize`, the tasks are in several packages, or some values have
                not been sent yet.
        """
        if self.package_id is None or self._feed.more or len(self._feed.package_ids) > 1:
            raise ValueError(
                "only a map whose tasks are all in one package can be detached: it needs a task, and no buffersize"
            )
        for handle in self.under_way():
            self._session.forget(handle)
        self._feed.parts.clear()
        return self.package_id

    def __del__(self) -> None:
        if getattr(self, "_touched", False):
            self.close()
        else:  # the program reads no results, only the side effects of the tasks matter: let them run to their end
            for handle in self.under_way() if hasattr(self, "_feed") else ():
                self._session.drop(handle)


class UnorderedResults(MapResults[T_co]):
    """An iterator over the results of a map, in the order in which the results arrive."""

    def _take(self) -> tuple[int, Any, BaseException | None]:
        return self._feed.buffer.take_any(self._feed.parts, self._feed.deadline)

    def indexed(self) -> Iterator[tuple[int, Any]]:
        """Yield the remaining results, each with its task's index.

        The exception of a failed task ends the iteration.
        """
        while self._feed.parts:
            try:
                index, value, error = self._take()
            except KeyboardInterrupt:
                self._session.cancellations.interrupt(self.under_way())
                raise
            if error is not None:
                raise raisable(error, index)
            yield index, value
            self._drop_read()
