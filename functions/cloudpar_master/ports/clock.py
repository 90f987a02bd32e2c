from typing import Protocol


class Clock(Protocol):
    """Wall time. Masters' clocks agree roughly; nothing depends on more."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        ...


class Ids(Protocol):
    """Randomness."""

    def fresh(self) -> str:
        """A new name of 128 random bits, letters and digits only."""
        ...
