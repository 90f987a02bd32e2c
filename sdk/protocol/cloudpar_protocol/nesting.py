"""Tasks that start tasks of their own: where a client inside a task and its executor meet, in one process.

A task that waits for tasks of its own uses no core, but it holds its executor. If all executors of a master did so, the
tasks that they wait for would never run. So the client reports to the executor what it waits for, and the worker runs
another executor meanwhile.
"""

from typing import NamedTuple, Protocol


class OwnPool(NamedTuple):
    """How a task reaches the master of the pool that runs it."""

    endpoint: str
    token: str


class Executor(Protocol):
    """What the process of an executor offers to the clients in it. For any thread.

    Attributes:
        depth: Of the task that runs: 0, or one more than that of the task that has started its package.
        pool: The pool that this executor belongs to, if the pool has started its worker; None in the processes that a
            task forks, which cannot tell the executor that they wait.
    """

    depth: int

    @property
    def pool(self) -> OwnPool | None:
        """See the attributes."""
        ...

    def begins_to_wait(self, package: object) -> None:
        """The task has started a package, or reads one: until the other call it counts as waiting."""
        ...

    def ends_to_wait(self, package: object) -> None:
        """Nothing more is expected of the package."""
        ...


class _Process:
    executor: Executor | None = None


def register(executor: Executor) -> None:
    """Called once by an executor, before it runs task code."""
    _Process.executor = executor


def here() -> Executor | None:
    """The executor that this process is; None outside of tasks."""
    return _Process.executor
