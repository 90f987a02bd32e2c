"""For a pool inside a task: tells the task's executor that the task waits, and computes the depth of new packages."""

from cloudpar.errors import TooLarge
from cloudpar_protocol import nesting
from cloudpar_protocol.limits import NESTING


class Nesting:
    """Tells this process's executor when its task waits for packages of a client, and computes the packages' depth.

    Outside of tasks, and with `own_master`, this object reports nothing, and the depth is 0.

    Args:
        own_master: Whether the client's pool has its own master and executors. These executors run the packages, so the
            worker of this task need not run another executor while the task waits.
    """

    def __init__(self, *, own_master: bool) -> None:
        self._own_master = own_master

    def depth(self) -> int:
        """Return the nesting depth of a package that this client starts now.

        The depth is 0 outside of tasks and with `own_master`. Otherwise it is one more than the depth of the running
        task.

        Raises:
            TooLarge: The depth would exceed NESTING.
        """
        executor = self._executor()
        depth = 0 if executor is None else executor.depth + 1
        if depth > NESTING:
            raise TooLarge(
                f"tasks that start tasks of their own nest {NESTING} deep, which is the limit: let the deepest ones do "
                "their work themselves"
            )
        return depth

    def wait_started(self, package: object) -> None:
        """Report that the task now waits for this package."""
        if (executor := self._executor()) is not None:
            executor.begins_to_wait(package)

    def wait_ended(self, package: object) -> None:
        """Report that the task no longer waits for this package; no-op if the task did not wait for the package."""
        if (executor := self._executor()) is not None:
            executor.ends_to_wait(package)

    def _executor(self) -> nesting.Executor | None:
        return None if self._own_master else nesting.here()
