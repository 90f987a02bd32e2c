"""The compute time that each package may still use, as far as this worker knows."""

from cloudpar_protocol.worker_messages import Lease


class Budgets:
    """The compute time that each package may still use, in microseconds.

    The master reports a budget for each package. This class subtracts the execution time of results that the budget
    does not take into account yet, and the time that the account owes. An account owes compute time that no result has
    reported, for example because the executor was killed. The account's next result on this worker reports the owed
    time, even if it is a result of a later package.
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
        """Add `unpaid_us` to the time that an account owes. Its tasks have used this time, and no result reports it."""
        if unpaid_us > 0:
            self._owed_us[account] = self._owed_us.get(account, 0) + unpaid_us

    def pay(self, account: str) -> int:
        """Return the time that an account owes, and set it to zero. The caller must report this time with a result."""
        return self._owed_us.pop(account, 0)

    def update(self, lease: Lease, budget_us: int) -> None:
        """Store the budget that the master has just reported for the package of a lease."""
        self._budget_us[lease.package_id] = budget_us
        self._accounts[lease.package_id] = lease.account

    def used(self, package_id: str, total_us: int) -> None:
        """Record the execution time of new results, which the master's budget does not take into account yet."""
        self._uncounted_us[package_id] = self._uncounted_us.get(package_id, 0) + total_us

    def counted(self, package_id: str, total_us: int) -> None:
        """Stop subtracting the execution time of published results: the master's next budget takes it into account.

        Without this call the time would be subtracted twice, and the worker would stop tasks before the quota is used
        up.
        """
        left_us = self._uncounted_us.get(package_id, 0) - total_us
        if left_us > 0:
            self._uncounted_us[package_id] = left_us
        else:
            self._uncounted_us.pop(package_id, None)

    def left_us(self, package_id: str) -> int:
        """Return the time that a package may still use; negative if the package has used too much.

        The time of running tasks is not subtracted.
        """
        owed_us = self._owed_us.get(self._accounts.get(package_id, ""), 0)
        return self._budget_us.get(package_id, 0) - self._uncounted_us.get(package_id, 0) - owed_us

    def has_uncounted(self, package_id: str) -> bool:
        """Whether a package has results that the master's budget does not take into account yet."""
        return package_id in self._uncounted_us

    def forget(self, package_id: str) -> None:
        """Drop a package. Call it when the package's last lease here has ended."""
        self._budget_us.pop(package_id, None)
        self._accounts.pop(package_id, None)
        self._uncounted_us.pop(package_id, None)
