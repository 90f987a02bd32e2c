"""Another master that folds the same packages, mostly a moment earlier."""

from collections.abc import Callable
from typing import Any

from cloudpar_master.core.head import Head
from cloudpar_master.ports import PackageStore

WINS, ROUND = 5, 7
"""It wins WINS of ROUND races."""

ATTEMPTS = 2
"""A master with a rival tries less often than usual, so that it also gives up in some runs."""


class Contended:
    """A package store whose saves mostly come too late."""

    def __init__(self, packages: PackageStore, fold: Callable[[str], object]) -> None:
        self._packages = packages
        self._fold = fold
        self._saves = 0

    def save(self, head: Head, *more: Any) -> bool:
        """See the port."""
        number, self._saves = self._saves, self._saves + 1
        if number % ROUND < WINS:
            self._fold(head.package_id)
        return self._packages.save(head, *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packages, name)
