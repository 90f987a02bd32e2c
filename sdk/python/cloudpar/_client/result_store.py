"""Keeps the results of a package, so that they can be read several times."""

import threading
import time
from collections.abc import Sequence

from msgspec.structs import replace

from cloudpar.errors import CloudparError
from cloudpar_protocol.payloads import TaskResult

from .package_handle import PackageHandle


class ResultStore:
    """Receives the results of one package and keeps all of them. Any thread may use it.

    Attributes:
        failure: Why the tasks without a result will never have a result. None while the package runs, or if all tasks
            have a result.
    """

    def __init__(self) -> None:
        self.failure: CloudparError | None = None
        self._condition = threading.Condition()
        self._results: dict[int, TaskResult] = {}
        self._ended = False

    def started(self, handle: PackageHandle) -> None:
        """Do nothing, because the package was started before."""

    def receive(self, results: Sequence[TaskResult]) -> None:
        """Store results."""
        with self._condition:
            self._results.update((result.index, _lasting(result)) for result in results)
            self._condition.notify_all()

    def end(self, failure: CloudparError | None) -> None:
        """Record that no more results will come."""
        with self._condition:
            self._ended, self.failure = True, failure
            self._condition.notify_all()

    def wait(self, index: int, deadline: float | None) -> TaskResult | None:
        """Wait for the result of one task and return it; None if the task will have no result.

        Raises:
            TimeoutError: The result did not arrive before the deadline (of the monotonic clock).
        """
        with self._condition:
            while index not in self._results and not self._ended:
                timeout_s = None if deadline is None else deadline - time.monotonic()
                if timeout_s is not None and timeout_s <= 0:
                    raise TimeoutError("the results of the package did not come within the timeout")
                self._condition.wait(timeout_s)
            return self._results.get(index)

    def contents(self) -> dict[int, TaskResult]:
        """Return all results that have arrived, by task index."""
        with self._condition:
            return dict(self._results)


def _lasting(result: TaskResult) -> TaskResult:
    """Return a result that can be decoded several times: each time, large arrays get memory of their own."""
    return result if result.data is None or type(result.data) is bytes else replace(result, data=bytes(result.data))
