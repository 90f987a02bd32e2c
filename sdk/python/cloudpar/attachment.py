"""`Attachment`: the results of a package that is found by its id, such as one that another process started."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from cloudpar_protocol.payloads import TaskResult

from ._arguments.argument_types import seconds_or_none
from ._client.failures import copied, raisable
from ._client.result_store import ResultStore
from .errors import CloudparError, Gone

if TYPE_CHECKING:
    from ._client.session import Session

T_co = TypeVar("T_co", covariant=True)


class Outcome(NamedTuple, Generic[T_co]):
    """The result of one task of a package: its value or its error.

    Attributes:
        task_index: The task's number, from 0.
        value: The value that the task returned; None if there is an error.
        error: The exception that the task raised, or an exception that says why the task has no value; None if the task
            has a value.

    Example:
        >>> from cloudpar import Outcome
        >>> Outcome(task_index=7, value=49, error=None).value
        49
    """

    task_index: int
    value: T_co | None
    error: BaseException | None


class Attachment(Generic[T_co]):
    """The results of a package that is found by its id. Each iteration gives all results, in task order.

    If a task failed, `next` raises the task's exception, and the following call of `next` continues with the next task,
    as with the results of a map.

    Reading does not acknowledge the package, so other processes can also read its results. The results stay at the
    master until a client acknowledges the package, or until the master's retention time is over.

    A pool that shuts down waits for an attached package only while the program reads the package's results. Ctrl-C does
    not cancel a package that another pool started, but `cancel` does.
    """

    def __init__(self, session: "Session", package_id: str, *, keep: object = None) -> None:
        self.package_id = package_id
        self._keep = keep  # keeps the pool alive: a pool that is garbage-collected shuts down
        self._session = session
        self._store = ResultStore()
        self._handle = session.attach(package_id, self._store)

    def __repr__(self) -> str:
        return f"<Attachment to package {self.package_id}>"

    def __iter__(self) -> Iterator[T_co]:
        return AttachedResults(self)

    def results(self, timeout: float | None = None) -> list[T_co]:
        """Return all values in task order.

        Args:
            timeout: The longest time to wait, in seconds; None waits without a limit.

        Raises:
            TypeError: `timeout` is not a number.
            ValueError: `timeout` is not finite, or is too large.
            TimeoutError: Not all values arrived within `timeout`.
            Exception: The exception of the first failed task. `outcomes` also gives the results of the other tasks.
            NotFound: This account has no package of this id.
            Gone: The package was acknowledged or deleted.
            CloudparError: A task has no result, because the package failed or was cancelled, the master stopped
                answering, or the pool was shut down. The exception is SealBroken if the seal of a result is wrong.
        """
        __tracebackhide__ = True
        timeout = seconds_or_none("timeout", timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        values: list[T_co] = []
        with self.reading():
            while (outcome := self.read(len(values), deadline)) is not None:
                if outcome.error is not None:
                    try:
                        raise raisable(outcome.error, outcome.task_index)
                    finally:
                        del outcome  # otherwise the exception and this frame would keep each other alive
                values.append(outcome.value)  # type: ignore[arg-type]  # it has a value
        return values

    def outcomes(self, timeout: float | None = None) -> list[Outcome[T_co]]:
        """Return each task's value or error, in task order.

        A task's exception is returned, never raised. If the package failed or was cancelled, the error of each task
        without a result gives the reason.

        Args:
            timeout: The longest time to wait for the end of the package, in seconds. None waits without a limit, and 0
                does not wait. If the package still runs after this time, the list leaves out the tasks without a
                result. With any timeout, the call first waits until this process has received every result that the
                master had when this attachment was made.

        Raises:
            TypeError: `timeout` is not a number.
            ValueError: `timeout` is not finite, or is too large.
            NotFound: This account has no package of this id.
            Gone: The package was acknowledged or deleted.
            CloudparError: The number of tasks is not known, because the master never answered for this package.

        Example:
            >>> from cloudpar import Pool
            >>> with Pool(workers=2) as pool:
            ...     results = pool.map(lambda x: 12 // x, [3, 0, 4])
            ...     outcomes = pool.attach(results.package_id).outcomes()
            >>> [outcome.value for outcome in outcomes], outcomes[1].error
            ([4, None, 3], ZeroDivisionError('integer division or modulo by zero'))
        """
        timeout = seconds_or_none("timeout", timeout)
        with self.reading():
            self._handle.caught_up.wait()
            self._handle.ended.wait(timeout)
            failure, results = self._store.failure, self._store.contents()
            tasks = self._handle.package.tasks
            if failure is not None and not tasks:
                raise copied(failure)
            indexes = sorted(results) if failure is None else range(tasks)
            return [self._outcome(index, results.get(index)) for index in indexes]

    def read(self, index: int, deadline: float | None = None) -> Outcome[T_co] | None:
        """Wait for the result of one task and return it; None if the package has no such task.

        Raises:
            TimeoutError: The result did not arrive before the deadline (of the monotonic clock).
            CloudparError: The package failed before its number of tasks was known, and `index` is 0. For such a package
                and any other index, the method returns None.
        """
        result = self._store.wait(index, deadline)
        failure, tasks = self._store.failure, self._handle.package.tasks
        if failure is not None and not tasks and not index:
            raise copied(failure)
        if result is None and (failure is None or index >= tasks):
            return None
        return self._outcome(index, result)

    def _outcome(self, index: int, result: TaskResult | None) -> Outcome[T_co]:
        if result is not None:
            return Outcome(index, *self._handle.outcome(result))
        return Outcome(index, None, self._handle.lost_task(index))

    def reading(self) -> AbstractContextManager[None]:
        """Return a context. While it is open, a pool that shuts down waits for the package."""
        return self._session.packages.reading(self._handle)

    def cancel(self) -> None:
        """Cancel the package: stop its running tasks and drop the queued ones.

        Raises:
            CloudparError: The master refuses or does not answer.
        """
        self._handle.cancelled()
        self._session.cancellations.cancel(self.package_id)

    def acknowledge(self) -> None:
        """Tell the master to delete the package with its results, which frees their storage.

        First read all results that you want, because this object receives no further results. If some results are
        missing, `results` raises `Gone`. The master cancels unfinished tasks.

        The method returns at once. The pool sends the request within about a second, at the latest when the pool shuts
        down. If the request does not reach the master, for example because this process was killed, the master deletes
        the results some days later.
        """
        self._session.read(self._handle)
        if not self._handle.ended.is_set():
            self._handle.lost(Gone("this program has acknowledged the package before it had received all results"))


class AttachedResults(Iterator[T_co]):
    """One iteration over an attachment.

    From the first call of `next` until the iteration ends or this object is garbage-collected, a pool that shuts down
    waits for the package.
    """

    def __init__(self, attachment: Attachment[T_co]) -> None:
        self._attachment = attachment
        self._index = 0
        self._reading: ExitStack | None = None

    def __next__(self) -> T_co:
        __tracebackhide__ = True
        if self._reading is None:
            self._reading = ExitStack()
            self._reading.enter_context(self._attachment.reading())
        try:
            outcome = self._attachment.read(self._index)
        except CloudparError:
            self._index += 1  # the package failed before its number of tasks was known; the next call ends
            raise
        if outcome is None:
            self._reading.close()
            raise StopIteration
        self._index += 1
        if outcome.error is None:
            return outcome.value  # type: ignore[return-value]  # it has a value
        try:
            raise raisable(outcome.error, outcome.task_index)
        finally:
            del self, outcome  # otherwise the exception's frame would keep the iteration and the pool alive

    def __del__(self) -> None:
        if self._reading is not None:
            self._reading.close()
