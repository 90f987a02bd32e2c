"""Tasks that start tasks: a client inside a task reports to the task's executor, which is the same process.

A task that waits for its own tasks uses no core, but occupies its executor. If all executors of a master waited like
this, the tasks for which they wait would never run. So the client tells the executor which packages the task waits for.
Until this wait ends, the worker runs one more executor.
"""

from typing import NamedTuple, Protocol


class OwnPool(NamedTuple):
    """The data with which a task reaches the master of the pool that runs the task."""

    endpoint: str
    token: str


class Executor(Protocol):
    """The functions and data that an executor's process offers to the clients in it. Safe for use by any thread.

    Attributes:
        depth: The depth of the running task: 0 if no task started its package, otherwise one more than the depth of the
            task that started it.
        pool: The pool that started this worker; None if no pool started it, or if the worker is shared. Also None in
            processes that a task forks, because they cannot tell the executor that they wait.
    """

    depth: int

    @property
    def pool(self) -> OwnPool | None:
        """The pool that started this worker; see the attributes of this class."""

    def begins_to_wait(self, package: object) -> None:
        """Report that the task starts a package, or reads one.

        The client calls this before it requests the start, because the master may delay the reply.

        The task counts as waiting until `ends_to_wait` was called for each package for which this method was called.
        """

    def ends_to_wait(self, package: object) -> None:
        """Report that the task does not wait for the package any more."""


class _Process:
    executor: Executor | None = None


def register(executor: Executor) -> None:
    """Set this process's executor. An executor's process calls this once, before it runs task code."""
    _Process.executor = executor


def here() -> Executor | None:
    """Return the executor of this process; None if the process is not an executor."""
    return _Process.executor
