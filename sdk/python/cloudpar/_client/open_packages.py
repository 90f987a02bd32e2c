"""The packages of a session that have unread results."""

import contextlib
import threading
from collections.abc import Iterator

from .package_handle import PackageHandle


class OpenPackages:
    """The packages that have unread results and that the session has not dropped. Any thread may use this object.

    Attributes:
        last: The package that ended last; None before the first package ends.
    """

    def __init__(self) -> None:
        self.last: PackageHandle | None = None
        self._condition = threading.Condition()
        self._open: dict[PackageHandle, None] = {}
        self._unwanted: set[PackageHandle] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, handle: PackageHandle) -> None:
        """Add a package that has started."""
        with self._condition:
            self._open[handle] = None

    def remove(self, handle: PackageHandle) -> None:
        """Remove a package; no-op if it is not open."""
        with self._condition:
            self._open.pop(handle, None)
            self._condition.notify_all()

    def runs_unwanted(self, handle: PackageHandle) -> bool:
        """Record that no program will read a package; return whether the package still runs.

        If the package still runs, `ended` returns True for it when it ends.
        """
        with self._condition:
            if handle.ended.is_set():
                return False
            self._unwanted.add(handle)
            return True

    def ended(self, handle: PackageHandle) -> bool:
        """Record that a package has ended; return whether no program will read it. A second call returns False."""
        with self._condition:
            self.last = handle
            unwanted = handle in self._unwanted
            self._unwanted.discard(handle)
            self._condition.notify_all()
            return unwanted

    def handles(self) -> list[PackageHandle]:
        """Return all open packages."""
        with self._condition:
            return list(self._open)

    def unfinished(self) -> list[PackageHandle]:
        """Return the open packages that have not ended."""
        return [handle for handle in self.handles() if not handle.ended.is_set()]

    def ours(self) -> list[PackageHandle]:
        """Return the packages that this pool started and that have not ended."""
        return [handle for handle in self.unfinished() if not handle.attached]

    @contextlib.contextmanager
    def reading(self, handle: PackageHandle) -> Iterator[None]:
        """While this context is open, the pool's shutdown waits for the package, even if the handle is attached."""
        with self._condition:
            handle.readers += 1
        try:
            yield
        finally:
            with self._condition:
                handle.readers -= 1
                self._condition.notify_all()

    def wait(self) -> None:
        """Wait until every open package has ended, except attached packages that the program is not reading."""
        with self._condition:
            self._condition.wait_for(lambda: not any(handle.holds for handle in self._open))
