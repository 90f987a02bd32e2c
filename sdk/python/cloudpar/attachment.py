"""A package that somebody else has started, read from here."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Generic, NamedTuple, TypeVar

from cloudpar_protocol.payloads import TaskResult

from ._arguments.argument_types import seconds_or_none
from ._client.failures import raisable
from ._client.result_store import ResultStore
from ._client.session import Session
from .errors import CloudparError

T_co = TypeVar("T_co", covariant=True)


class Outcome(NamedTuple, Generic[T_co]):
    """What one task of a package came to.

    Attributes:
        task_index: The task's number, from 0.
        value: What it returned; None if it has an error.
        error: What it raised, or why it has no value; None if it has one.

    Example:
        >>> from cloudpar import Outcome
        >>> Outcome(task_index=7, value=49, error=None).value
        49
    """

    task_index: int
    value: T_co | None
    error: BaseException | None


class Attachment(Generic[T_co]):
    """The results of a package by its id; iterate over it for them in task order, as often as you like.

    An iterator raises a task's exception where its value would be, and `next` goes on with the task after it, as that
    of a map does.

    The results stay at the master until `acknowledge`, so that other processes can read them too. The package is not
    the pool's own: the pool's end waits for it only while it is being read, and only `cancel` cancels it, not Ctrl-C.
    """

    def __init__(self, session: Session, package_id: str, *, keep: object = None) -> None:
        self.package_id = package_id
        self._keep = keep  # the pool: one that has no other name would end before it is read
        self._session = session
        self._store = ResultStore()
        self._handle = session.attach(package_id, self._store)

    def __repr__(self) -> str:
        return f"<Attachment to package {self.package_id}>"

    def __iter__(self) -> Iterator[T_co]:
        return AttachedResults(self)

    def results(self, timeout: float | None = None) -> list[T_co]:
        """All values in task order.

        Args:
            timeout: In seconds; None waits as long as it takes.

        Raises:
            TimeoutError: They were not all there in time.
            Exception: What the first failed task raised. `outcomes` gives the other tasks' results, too.
            NotFound: The master knows no such package for this account.
            Gone: The package was acknowledged or deleted.
            CloudparError: The package failed, and the first task without a result has none because of this.
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
                        del outcome  # no cycle through this frame
                values.append(outcome.value)  # type: ignore[arg-type]  # it has a value
        return values

    def outcomes(self, timeout: float | None = None) -> list[Outcome[T_co]]:
        """What each task came to, its value or its error, in task order; of a package that runs, what is there so far.

        Nothing that a task raised is raised here. If the package failed, its failure is the error of each task that
        has no result.

        Args:
            timeout: How long to wait for the package's end, in seconds; None waits as long as it takes, 0 not at all.
                Then tasks that have no result yet are left out. (The first call waits in any case until everything is
                here that the master has.)

        Raises:
            NotFound: The master knows no such package for this account.
            Gone: The package was acknowledged or deleted.

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
                raise failure
            indexes = sorted(results) if failure is None else range(tasks)
            return [self._outcome(index, results.get(index)) for index in indexes]

    def read(self, index: int, deadline: float | None = None) -> Outcome[T_co] | None:
        """Wait for what one task came to; None if there is no such task.

        Raises:
            TimeoutError: It did not come before the deadline (of the monotonic clock).
            CloudparError: It is not even known how many tasks there are.
        """
        result = self._store.wait(index, deadline)
        failure, tasks = self._store.failure, self._handle.package.tasks
        if failure is not None and not tasks and not index:
            raise failure
        if result is None and (failure is None or index >= tasks):
            return None
        return self._outcome(index, result)

    def _outcome(self, index: int, result: TaskResult | None) -> Outcome[T_co]:
        if result is not None:
            return Outcome(index, *self._handle.outcome(result))
        return Outcome(index, None, self._handle.lost_task(index))

    def reading(self) -> AbstractContextManager[None]:
        """For as long as somebody reads it, the pool's end waits for the package."""
        return self._session.reading(self._handle)

    def cancel(self) -> None:
        """Stop what runs of it and drop the rest."""
        self._handle.cancelled()
        self._session.cancel(self.package_id)

    def acknowledge(self) -> None:
        """Nobody wants its results any more: free their storage.

        Returns at once. The master is told within about a second, at the latest when the pool ends; what it was not
        told about, because this process was killed or the master was away, it deletes some days after the end.
        """
        self._session.read(self._handle)


class AttachedResults(Iterator[T_co]):
    """One iteration over an attachment. From its first result to its last the pool's end waits for the package."""

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
            self._index += 1  # raised once for the whole package, which has no number of tasks
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
            del self, outcome  # the exception refers to this frame: it would keep the iteration, and so the pool, alive

    def __del__(self) -> None:
        if self._reading is not None:
            self._reading.close()
