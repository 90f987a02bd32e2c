"""Computes what instances cost that run and do not work."""

from collections.abc import Collection

import msgspec

from cloudpar.deployment import prices


class Zombies(msgspec.Struct, frozen=True):
    """The instances of a fleet, none of which works.

    Attributes:
        most: How many instances the fleet may have.
        types: The instance types of which the fleet consists.
        volume_gib: The volume of each instance, in GiB.
        silent_s: How long an instance runs at most if its worker never reaches the master.
    """

    most: int
    types: Collection[str]
    volume_gib: int
    silent_s: int

    @property
    def dearest(self) -> str:
        """The instance type with the highest price on demand. No spot instance costs more than that."""
        return max(self.types, key=lambda each: prices.on_demand_usd(each) or float("inf"))

    @property
    def hour_usd(self) -> float:
        """The price of one instance, with its volume and its address."""
        return prices.hour([prices.on_demand_usd(self.dearest)], 0.0, self.volume_gib).total

    def shown(self, environment: str) -> list[str]:
        """Return the row of an environment in the table of docs/cost-model.md."""
        once, day = self.silent_s / 3600 * self.hour_usd, 24 * self.most * self.hour_usd
        return [environment, str(self.most), self.dearest, f"{once:.2f}", f"{day:.0f}"]
