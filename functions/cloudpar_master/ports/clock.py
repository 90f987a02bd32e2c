from typing import Protocol


class Clock(Protocol):
    """A master's time. The clocks of several masters agree only roughly, which is enough for the services.

    The services use `now` for all delays, deadlines and expiry times. They use `date` only for times that people read,
    and for the expiry of tokens, because operators read this time, too.
    """

    def now(self) -> float:
        """Return the master's time in seconds. Usually these are the seconds since 1970, UTC."""

    def date(self, at: float) -> float:
        """Convert a time of this clock to the time of the machine's clock, in seconds since 1970, UTC."""


class Ids(Protocol):
    """Makes new ids."""

    def fresh(self) -> str:
        """Return a new id of 128 random bits, letters and digits only."""
