"""Finds packages that can cut chunks for idle executors."""

from collections.abc import Iterator
from itertools import zip_longest

from cloudpar_master.core.head import Head
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import Clock, Fit, Needs, PackageStore

TOGETHER = 25
"""How many heads are read together. Mostly the first head is enough."""

LEARNED = 1_000
"""One request reads the heads of at most this many packages that are new to this process, to learn what they need of a
worker. The next request learns about further packages."""

REMEMBERED = 1_000
"""For how many accounts the process remembers when they last had a turn. A forgotten account is first."""

SKIPPED_S = 30.0
"""For how many seconds a package that this master cannot fold is left out, so that its head is not read each time."""

SKIPPED = 10_000
"""How many packages are remembered as left out. The heads of further packages that this master cannot fold are read
each time."""


class UncutPackages:
    """Lists the packages that can cut chunks, so that no account and no package hides the others behind it.

    Accounts take turns, and a package that the worker cannot run is left out before its head is read. What a package
    needs of a worker never changes. So the process reads the head of each package once to learn its needs, and
    remembers them.
    """

    def __init__(self, packages: PackageStore, clock: Clock) -> None:
        self._packages = packages
        self._clock = clock
        self._skipped = Recent[str, float](SKIPPED)
        """By package id: until when a package that this master cannot fold is left out."""
        self._needs: dict[str, Needs] = {}
        self._turns = Recent[str, int](REMEMBERED)
        self._taken = 0

    def heads(self, fit: Fit) -> Iterator[Head]:
        """Yield the heads of packages that a worker can run, and read them as the caller iterates.

        First comes the oldest package of each account, then the second one of each account, and so on. The account
        that had a turn least recently is first.
        """
        wanted = self._in_order(fit)
        for start in range(0, len(wanted), TOGETHER):
            for head in self._packages.heads(wanted[start : start + TOGETHER]):
                if head.foreign:
                    self._skipped[head.package_id] = self._clock.now() + SKIPPED_S
                elif head.cuttable:  # the list may be a little old
                    yield head

    def had_turn(self, account_id: str) -> None:
        """Record that a package of an account has cut chunks for idle executors."""
        self._taken += 1
        self._turns[account_id] = self._taken

    def _in_order(self, fit: Fit) -> list[str]:
        accounts: dict[str, list[str]] = {}
        now = self._clock.now()
        for package_id, needs in self._known().items():
            if fit.takes(needs) and self._skipped.get(package_id, 0.0) <= now:
                accounts.setdefault(needs.account, []).append(package_id)
        lines = sorted(accounts, key=lambda account_id: self._turns.get(account_id, 0))
        rounds = zip_longest(*(accounts[account_id] for account_id in lines))
        return [package_id for each in rounds for package_id in each if package_id is not None]

    def _known(self) -> dict[str, Needs]:
        """Return what the packages that can cut chunks need, oldest first.

        If too many packages are new, some of them are missing.
        """
        listed = self._packages.uncut()
        new = [package_id for package_id in listed if package_id not in self._needs][:LEARNED]
        learned = {head.package_id: Needs(head.account_id, head.package_id, head.python)
                   for head in (self._packages.heads(new) if new else ())}  # fmt: skip
        found = {**self._needs, **learned}
        # Packages that are not listed any more are forgotten, so that this takes no more memory than the list.
        self._needs = {package_id: found[package_id] for package_id in listed if package_id in found}
        return self._needs
