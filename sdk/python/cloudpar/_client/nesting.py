"""A pool inside a task: what it tells the executor that runs the task."""

from cloudpar.errors import TooLarge
from cloudpar_protocol import nesting
from cloudpar_protocol.limits import NESTING


class Nesting:
    """What one client tells; nothing outside of tasks.

    Args:
        own_master: The client's pool has a master and executors of its own, so no executor has to make room.
    """

    def __init__(self, *, own_master: bool) -> None:
        self._own_master = own_master

    def depth(self) -> int:
        """Of the packages that are started here.

        Raises:
            TooLarge: Tasks nest deeper than workers allow.
        """
        executor = self._executor()
        depth = 0 if executor is None else executor.depth + 1
        if depth > NESTING:
            raise TooLarge(
                f"tasks that start tasks of their own nest {NESTING} deep, which is the limit: let the deepest ones do "
                "their work themselves"
            )
        return depth

    def begins_to_wait(self, package: object) -> None:
        """A package is under way."""
        if (executor := self._executor()) is not None:
            executor.begins_to_wait(package)

    def ends_to_wait(self, package: object) -> None:
        """It has ended, or nobody here reads it any more. Harmless if it never was under way."""
        if (executor := self._executor()) is not None:
            executor.ends_to_wait(package)

    def _executor(self) -> nesting.Executor | None:
        return None if self._own_master else nesting.here()
