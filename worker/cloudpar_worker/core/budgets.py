"""How much of its account's quota each package may still use, as far as this worker knows."""


class Budgets:
    """The compute time that each package may still use, in microseconds.

    It is the master's last figure, minus the execution time of results that the master has not counted yet.
    """

    def __init__(self) -> None:
        self._budget_us: dict[str, int] = {}
        self._uncounted_us: dict[str, int] = {}

    def update(self, package_id: str, budget_us: int) -> None:
        """Store the master's newest figure."""
        self._budget_us[package_id] = budget_us

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
        return self._budget_us.get(package_id, 0) - self._uncounted_us.get(package_id, 0)

    def has_uncounted(self, package_id: str) -> bool:
        """Whether the master has yet to count results of a package."""
        return package_id in self._uncounted_us

    def forget(self, package_id: str) -> None:
        """Drop a package. Call it when the package's last lease here has ended."""
        self._budget_us.pop(package_id, None)
        self._uncounted_us.pop(package_id, None)
