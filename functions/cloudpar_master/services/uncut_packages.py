"""Finds packages of which the master can cut chunks for idle executors."""

from collections.abc import Iterator
from itertools import islice, zip_longest

from cloudpar_master.core.head import Head
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import Clock, Fit, Needs, PackageStore

TOGETHER = 25
"""How many heads one request to the store reads. Usually the caller needs only the first of these heads."""

LEARNED = 1_000
"""One request reads the heads of at most this many packages that are new to this process, to learn what they need of a
worker. The next request learns about further packages."""

REMEMBERED = 1_000
"""For how many accounts the process remembers when they last had a turn. A forgotten account comes first."""

SKIPPED_S = 30.0
"""For how many seconds a package that this master cannot fold is left out, so that its head is not read each time."""

SKIPPED = 10_000
"""How many packages are remembered as left out. The heads of further packages that this master cannot fold are read
each time."""

REFUSED_S = 5.0
"""If an account grants no compute time, its packages without a reserve are left out for this many seconds."""

SPENT_S = 30.0
"""After a package was seen without a reserve, the process believes for this many seconds that it still has none, and
does not read its head."""


class UncutPackages:
    """Lists the packages of which the master can cut chunks. No account and no package hides the others behind it.

    Accounts take turns, and a package that the worker cannot run is left out before its head is read. What a package
    needs of a worker never changes. So the process reads the head of each package once to learn its needs, and
    remembers them. Packages without a reserve whose account has just granted nothing are also left out: otherwise each
    request of an idle worker would read all closed packages of an account without quota.
    """

    def __init__(self, packages: PackageStore, clock: Clock) -> None:
        self._packages = packages
        self._clock = clock
        self._skipped = Recent[str, float](SKIPPED)
        """By package id: until when a package that this master cannot fold is left out."""
        self._needs: dict[str, Needs] = {}
        self._spent: dict[str, float] = {}
        """By package id: when the package was last seen without a reserve."""
        self._refused = Recent[str, float](REMEMBERED)
        """By account id: until when packages without a reserve are left out."""
        self._turns = Recent[str, int](REMEMBERED)
        self._taken = 0

    def heads(self, fit: Fit) -> Iterator[Head]:
        """Yield the heads of packages that a worker can run, and read them as the caller iterates.

        First comes the oldest package of each account, then the second one of each account, and so on. The account
        that had a turn least recently is first.
        """
        wanted = iter(self._in_order(fit))
        again = iter(range(TOGETHER))
        while batch := list(islice((each for each in wanted if not self._left_out(each, again)), TOGETHER)):
            for head in self._packages.heads(batch):
                self._note_reserve(head)
                if head.foreign:
                    self._skipped[head.package_id] = self._clock.now() + SKIPPED_S
                # The list may be a little old, and the account may have refused since this batch was read.
                elif head.cuttable and not (head.quota.reserve_spent and self._refuses(head.account_id)):
                    yield head

    def refused(self, account_id: str) -> None:
        """Record that an account has granted no compute time."""
        self._refused[account_id] = self._clock.now() + REFUSED_S

    def _refuses(self, account_id: str) -> bool:
        return self._clock.now() < self._refused.get(account_id, 0.0)

    def _left_out(self, package_id: str, again: Iterator[int]) -> bool:
        """Whether to leave out a package, because it has no reserve and its account grants none.

        A package may have got a reserve since its head was read. So a few heads, one for each number in `again`, are
        read again after SPENT_S.
        """
        if package_id not in self._spent or not self._refuses(self._needs[package_id].account):
            return False
        fresh = self._clock.now() < self._spent[package_id] + SPENT_S
        return fresh or next(again, None) is None

    def _note_reserve(self, head: Head) -> None:
        if head.quota.reserve_spent:
            self._spent[head.package_id] = self._clock.now()
        else:
            self._spent.pop(head.package_id, None)

    def had_turn(self, account_id: str) -> None:
        """Record that chunks of an account's package were cut for idle executors."""
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
        """Return by package id what the packages with uncut tasks need of a worker, oldest first.

        If too many packages are new, some of them are missing.
        """
        listed = self._packages.uncut()
        new = [package_id for package_id in listed if package_id not in self._needs][:LEARNED]
        found = dict(self._needs)
        for head in self._packages.heads(new) if new else ():
            found[head.package_id] = Needs(head.account_id, head.package_id, head.python)
            self._note_reserve(head)
        # Packages that are not listed any more are forgotten, so that this takes no more memory than the list.
        self._needs = {package_id: found[package_id] for package_id in listed if package_id in found}
        self._spent = {package_id: at for package_id, at in self._spent.items() if package_id in self._needs}
        return self._needs
