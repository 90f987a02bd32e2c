"""Another master that folds the same packages, always a moment earlier."""

from collections.abc import Callable
from typing import Any

from cloudpar_master.core.head import Head
from cloudpar_master.ports import PackageStore

WINS, ROUND = 5, 7
"""It wins so many of so many races."""

TRIES = 2
"""Who meets it tries less often than in earnest, so that he also meets the end of his patience."""


class Contended:
    """A package store for somebody whose saves mostly come too late."""

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
