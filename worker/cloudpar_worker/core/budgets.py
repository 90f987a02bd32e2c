"""How much of its account's quota each package may still use, as far as this worker knows."""

from cloudpar_protocol.worker_messages import Lease


class Budgets:
    """The compute time that each package may still use, in microseconds.

    This time is the master's last figure, minus the execution time of results that the master has not counted yet, and
    minus the time that the account owes. An account owes the time for which its tasks computed without a result that
    reports the time, for example in an executor that was killed. The account's next result on this worker reports the
    owed time, whichever package the result belongs to.
    """

    def __init__(self) -> None:
        self._budget_us: dict[str, int] = {}
        self._uncounted_us: dict[str, int] = {}
        self._accounts: dict[str, str] = {}
        """The account of each package."""
        self._owed_us: dict[str, int] = {}
        """The time that each account owes. An entry stays when the account's packages have ended here: a result of the
        account's next package reports the time.
        """

    def owe(self, account: str, unpaid_us: int) -> None:
        """Add time to what an account owes: its tasks have used the time, and no result reports it."""
        if unpaid_us > 0:
            self._owed_us[account] = self._owed_us.get(account, 0) + unpaid_us

    def pay(self, account: str) -> int:
        """Return the time that an account owes, and set it to zero. The caller must report this time with a result."""
        return self._owed_us.pop(account, 0)

    def update(self, lease: Lease, budget_us: int) -> None:
        """Store the master's newest figure for the package of a lease."""
        self._budget_us[lease.package_id] = budget_us
        self._accounts[lease.package_id] = lease.account

    def used(self, package_id: str, total_us: int) -> None:
        """Add the execution time of results that the master does not have yet."""
        self._uncounted_us[package_id] = self._uncounted_us.get(package_id, 0) + total_us

    def counted(self, package_id: str, total_us: int) -> None:
        """Stop subtracting the execution time of published results, because the master's next figure includes it.

        Without this the time would count twice, and the worker would stop tasks before the quota is used up.
        """
        left_us = self._uncounted_us.get(package_id, 0) - total_us
        if left_us > 0:
            self._uncounted_us[package_id] = left_us
        else:
            self._uncounted_us.pop(package_id, None)

    def left_us(self, package_id: str) -> int:
        """How much more time a package may use, negative if it has used too much.

        The time of running tasks is not subtracted.
        """
        owed_us = self._owed_us.get(self._accounts.get(package_id, ""), 0)
        return self._budget_us.get(package_id, 0) - self._uncounted_us.get(package_id, 0) - owed_us

    def has_uncounted(self, package_id: str) -> bool:
        """Whether the master has yet to count results of a package."""
        return package_id in self._uncounted_us

    def forget(self, package_id: str) -> None:
        """Drop a package. Call it when the package's last lease here has ended."""
        self._budget_us.pop(package_id, None)
        self._accounts.pop(package_id, None)
        self._uncounted_us.pop(package_id, None)
