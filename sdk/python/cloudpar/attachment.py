"""A package that somebody else has started, read from here."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from cloudpar_protocol.payloads import TaskResult

from .awaited import Awaited
from .errors import CloudparError
from .failures import raisable
from .session import Session

T_co = TypeVar("T_co", covariant=True)


class Attachment(Generic[T_co]):
    """The results of a package by its id; iterate over it for them in task order, as often as you like.

    They stay at the master until `acknowledge`, so that other processes can read them too. The package is not the
    pool's own: the pool's end waits for it only while it is being read, and only `cancel` cancels it, not Ctrl-C.
    """

    def __init__(self, session: Session, package_id: str, *, keep: object = None) -> None:
        self.package_id = package_id
        self._keep = keep  # the pool: one that has no other name would end before it is read
        self._session = session
        self._store = _Store()
        self._awaited = session.attach(package_id, self._store)

    def __iter__(self) -> Iterator[T_co]:
        index = 0
        with self._session.reading(self._awaited):
            while (result := self._store.wait(index, None)) is not None:
                yield self._open(result)
                index += 1

    def results(self, timeout: float | None = None) -> list[T_co]:
        """All values in task order.

        Args:
            timeout: In seconds; None waits as long as it takes.

        Raises:
            TimeoutError: They were not all there in time.
            Exception: What the first failed task raised.
            CloudparError: The package failed, is gone, or is not this account's.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        index = 0
        values: list[T_co] = []
        with self._session.reading(self._awaited):
            while (result := self._store.wait(index, deadline)) is not None:
                values.append(self._open(result))
                index += 1
        return values

    def _open(self, result: TaskResult) -> T_co:
        value, error = self._awaited.outcome(result)
        error = raisable(error, result.index)
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    def cancel(self) -> None:
        """Stop what runs of it and drop the rest."""
        self._awaited.cancelled()
        self._session.cancel(self.package_id)

    def acknowledge(self) -> None:
        """Nobody wants its results any more: free their storage.

        Returns at once. The master is told within about a second, at the latest when the pool ends; what it was not
        told about, because this process was killed or the master was away, it deletes some days after the end.
        """
        self._session.read(self._awaited)


class _Store:
    """Keeps all results, for reading again and again."""

    def __init__(self) -> None:
        self.deserialize_s = 0.0
        self._condition = threading.Condition()
        self._results: dict[int, TaskResult] = {}
        self._ended = False
        self._failure: CloudparError | None = None

    def started(self, awaited: Awaited) -> None:
        """It was long before."""

    def receive(self, results: Sequence[TaskResult]) -> None:
        with self._condition:
            self._results.update((result.index, result) for result in results)
            self._condition.notify_all()

    def end(self, failure: CloudparError | None) -> None:
        with self._condition:
            self._ended, self._failure = True, failure
            self._condition.notify_all()

    def wait(self, index: int, deadline: float | None) -> TaskResult | None:
        """The result of one task; None if there are no more tasks."""
        with self._condition:
            while index not in self._results:
                if self._failure is not None:
                    raise self._failure
                if self._ended:
                    return None
                timeout_s = None if deadline is None else deadline - time.monotonic()
                if timeout_s is not None and timeout_s <= 0:
                    raise TimeoutError("the results of the package did not come within the timeout")
                self._condition.wait(timeout_s)
            return self._results[index]
