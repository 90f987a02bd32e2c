"""What each package may still use of its account's quota, as far as this worker knows."""


class Budgets:
    """Microseconds: told by the master, less what was used here and no answer of the master has counted yet."""

    def __init__(self) -> None:
        self._told_us: dict[str, int] = {}
        self._unsettled_us: dict[str, int] = {}

    def told(self, package_id: str, budget_us: int) -> None:
        """The master's newest figure."""
        self._told_us[package_id] = budget_us

    def used(self, package_id: str, total_us: int) -> None:
        """Results were made that the master does not know."""
        self._unsettled_us[package_id] = self._unsettled_us.get(package_id, 0) + total_us

    def settled(self, package_id: str, total_us: int) -> None:
        """The master has them, so its next figure counts them."""
        left_us = self._unsettled_us.get(package_id, 0) - total_us
        if left_us > 0:
            self._unsettled_us[package_id] = left_us
        else:
            self._unsettled_us.pop(package_id, None)

    def left_us(self, package_id: str) -> int:
        """What tasks may use from now on."""
        return self._told_us.get(package_id, 0) - self._unsettled_us.get(package_id, 0)

    def unsettled(self, package_id: str) -> bool:
        """Whether results wait to be counted."""
        return package_id in self._unsettled_us

    def forget(self, package_id: str) -> None:
        """No lease of it is left here."""
        self._told_us.pop(package_id, None)
        self._unsettled_us.pop(package_id, None)
