from typing import Protocol


class Clock(Protocol):
    """A master's time. The clocks of several masters agree only roughly, and the services need no more.

    All waiting, ending and expiring goes by `now`. Only the times that people read go by `date`, and so does the expiry
    of tokens, which an operator reads, too.
    """

    def now(self) -> float:
        """Return the master's time in seconds. Usually these are the seconds since 1970, UTC."""

    def date(self, at: float) -> float:
        """Convert a time of this clock to the time of the machine's clock, in seconds since 1970, UTC."""


class Ids(Protocol):
    """Makes new ids."""

    def fresh(self) -> str:
        """Return a new id of 128 random bits, letters and digits only."""
