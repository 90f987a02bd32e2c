"""Decides whose tasks run next here: accounts take turns by the execution time that their tasks have received.

The master decides which chunks a worker gets (cloudpar_master.core.turns); this module decides in which order they run.
The account whose tasks have received the least execution time is furthest behind, and is next. Within this account, the
package whose tasks have received the least execution time is next. In both modules, a new account or package starts
with as much time as the one that is furthest behind.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cloudpar_protocol.worker_messages import Lease

from .execution_times import REMEMBERED, ExecutionTimes
from .lease_record import LeaseRecord

PATIENCE_US: Final = 200_000
"""How long first tasks of packages may go before all other tasks, in microseconds. If first tasks have gone before the
others for longer than this time, and for longer than one of the other tasks takes, one of the other tasks is next.
Without this limit a stream of small packages could stop a large package.
"""

ALLOWANCE_US: Final = 3_000_000
"""The first tasks of an account's packages go before all other tasks only if the account is at most this far ahead of
the account that is furthest behind, in microseconds. If the account is further ahead, its first tasks take turns like
all others. Without this limit, an account could start many packages of one long task each, and would run one of these
tasks for each task of another account, however short that task is. With a limit of 1 s, calls of an account with long
jobs took turns with the long job of another account, and waited.
"""

AWAY_US: Final = 10_000_000
"""An account that has no tasks here for at most this long, in microseconds, stays as far behind the others as it was.
An account with more tasks at the master often has none here for a moment.
"""

Running = Callable[[], Sequence[tuple[Lease, int]]]
"""Returns, for each running task, its lease and the microseconds since the task started."""


class Turns:
    """The execution time that the tasks of each account, and of each package of an account, have received here."""

    def __init__(self) -> None:
        self._accounts = ExecutionTimes()
        self._packages: dict[str, ExecutionTimes] = {}
        self._here: set[str] = set()
        self._seen_at_us: dict[str, int] = {}
        self._least_us = 0
        self._passed_over_at_us: int | None = None

    def order(
        self, ready: Sequence[LeaseRecord], running: Running, task_us: Callable[[LeaseRecord], float], now_us: int
    ) -> list[LeaseRecord]:
        """Return the leases in the order in which their tasks run.

        Args:
            ready: Leases with ready tasks, in the order in which they came.
            running: See Running.
            task_us: Returns the mean duration of a lease's tasks; 0 if unknown.
            now_us: The agent's time.
        """
        leases = {record.lease.package_id: record.lease for record in ready}
        if len(leases) <= 1:
            return list(ready)
        ran = running()
        accounts = self._times({lease.account for lease in leases.values()}, ran)
        packages = {key: self._packages_of(lease.account).start_us(key) for key, lease in leases.items()}
        for lease, ran_us in ran:
            _add(packages, lease.package_id, ran_us)
        allowed = {account for account in accounts if self.has_allowance(account)}
        firsts, others = list[LeaseRecord](), list[LeaseRecord]()
        for record in ready:
            (firsts if record.first and record.lease.account in allowed else others).append(record)
        others.sort(key=lambda record: (accounts[record.lease.account], packages[record.lease.package_id]))
        if not (firsts and others) or self._passed_over_at_us is None:
            return firsts + others
        patience_us = max(PATIENCE_US, task_us(others[0]))
        return others + firsts if now_us - self._passed_over_at_us > patience_us else firsts + others

    def goes_first(self, record: LeaseRecord) -> bool:
        """Whether the next task of a lease is the first one of its package, and may go before all other tasks."""
        return record.first and self.has_allowance(record.lease.account)

    def goes_before_fetched(self, record: LeaseRecord) -> bool:
        """Whether the next task of a lease also goes before all tasks that a fetch may bring.

        An account whose last chunk here has ended may have more at the master. If this worker remembers that another
        account has received much less time, a chunk of that account may go before the first tasks here.
        """
        ahead_us = self._accounts.before_last_us(record.lease.account) - self._accounts.least_us(record.lease.account)
        return self.goes_first(record) and ahead_us <= ALLOWANCE_US

    def has_allowance(self, account: str) -> bool:
        """Whether the first tasks of an account's packages may go before all other tasks (ALLOWANCE_US).

        The account's last results do not count: otherwise the account would lose this precedence because of a single
        long task.
        """
        return self._accounts.before_last_us(account) - self._least_us <= ALLOWANCE_US

    def fed(
        self,
        record: LeaseRecord,
        ready: Sequence[LeaseRecord],
        leases: Iterable[LeaseRecord],
        running: Running,
        now_us: int,
    ) -> None:
        """Record that an executor gets tasks of a ready lease. Call it before the tasks are taken from the lease.

        `leases` are all leases here. Two levels rise (see ExecutionTimes). The level of the accounts rises to the
        smallest time among the accounts that had tasks here lately (AWAY_US). The level of this account's packages
        rises to the smallest time among its packages that have tasks without a result here.
        """
        account = record.lease.account
        active = [each.lease for each in leases if not each.exhausted]
        accounts = {lease.account for lease in active}
        if accounts == self._here == self._seen_at_us.keys() and len(accounts) == 1:
            self._seen_at_us[account] = now_us
            self._least_us = self._accounts.start_us(account)
            self._accounts.rise(self._least_us)
        else:
            self._look(accounts, running(), now_us)
        packages = self._packages_of(account)
        own = {lease.package_id for lease in active if lease.account == account}
        packages.rise(min(map(packages.start_us, own)))
        if not self.goes_first(record) or all(map(self.goes_first, ready)):
            self._passed_over_at_us = None
        elif self._passed_over_at_us is None:
            self._passed_over_at_us = now_us

    def behind_us(self, lease: Lease, other: Lease) -> int:
        """Return the microseconds by which the package of a lease is behind that of another lease; negative if ahead.

        If the packages belong to two accounts, return by how much the first account is behind the other.
        """
        if lease.account != other.account:
            return self._accounts.start_us(other.account) - self._accounts.start_us(lease.account)
        packages = self._packages_of(lease.account)
        return packages.start_us(other.package_id) - packages.start_us(lease.package_id)

    def ran(self, lease: Lease, total_us: int) -> None:
        """Add the execution time of tasks of a lease."""
        self._accounts.add(lease.account, total_us)
        self._packages_of(lease.account).add(lease.package_id, total_us)

    def _look(self, accounts: set[str], ran: Sequence[tuple[Lease, int]], now_us: int) -> None:
        """Note the accounts that have tasks without a result here, and the time of the one that is furthest behind."""
        # Without the time of running tasks, an account whose only task runs for an hour would count as furthest behind
        # for this hour, and the first tasks of all other accounts would lose their precedence.
        self._least_us = min(self._times(accounts, ran).values())
        for newcomer in accounts - self._seen_at_us.keys():
            self._accounts.join(newcomer, self._least(ran))
        self._here = {*accounts, *(lease.account for lease, _ in ran)}
        seen = {account: at_us for account, at_us in self._seen_at_us.items() if now_us - at_us <= AWAY_US}
        self._seen_at_us = seen | dict.fromkeys(self._here, now_us)
        self._accounts.rise(min(map(self._accounts.start_us, self._seen_at_us)))

    def _times(self, accounts: set[str], ran: Iterable[tuple[Lease, int]]) -> dict[str, int]:
        """Return the time of each of these accounts, with that of its running tasks.

        A new account starts with the smallest time among the accounts that have tasks here, and this time includes that
        of their running tasks. Otherwise, if the tasks of an account have run for an hour while no other account had
        work, the account would get nothing for an hour after another account came.
        """
        times = {account: self._accounts.start_us(account) for account in accounts}
        least_us = self._least(ran)
        for newcomer in accounts - self._seen_at_us.keys():
            times[newcomer] = max(times[newcomer], least_us)
        for lease, ran_us in ran:
            _add(times, lease.account, ran_us)
        return times

    def _least(self, ran: Iterable[tuple[Lease, int]]) -> int:
        """Return the smallest time among the accounts that had tasks here at the last feed; 0 if there were none."""
        times = {account: self._accounts.start_us(account) for account in self._here}
        for lease, ran_us in ran:
            _add(times, lease.account, ran_us)
        return min(times.values(), default=0)

    def _packages_of(self, account: str) -> ExecutionTimes:
        if account not in self._packages:
            self._packages[account] = ExecutionTimes()
            if len(self._packages) > REMEMBERED:
                del self._packages[next(iter(self._packages))]
        return self._packages[account]


def _add(times_us: dict[str, int], key: str, more_us: int) -> None:
    if key in times_us:
        times_us[key] += more_us
