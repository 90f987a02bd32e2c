from typing import Protocol


class Clock(Protocol):
    """Wall time. The clocks of several masters agree only roughly, and the services need no more."""

    def now(self) -> float:
        """Return the seconds since 1970, UTC."""


class Ids(Protocol):
    """Makes new ids."""

    def fresh(self) -> str:
        """Return a new id of 128 random bits, letters and digits only."""
