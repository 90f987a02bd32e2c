from typing import Protocol


class Clock(Protocol):
    """A master's time. The clocks of several masters agree only roughly, and the services need no more.

    Everything that waits, ends or expires goes by `now`. Only what people read goes by `date`, and so does the expiry
    of tokens, which an operator reads, too.
    """

    def now(self) -> float:
        """Return the master's time in seconds. At best it is the seconds since 1970, UTC."""

    def date(self, at: float) -> float:
        """Return when a moment of this clock was, or will be, by the machine's clock: in seconds since 1970, UTC."""


class Ids(Protocol):
    """Makes new ids."""

    def fresh(self) -> str:
        """Return a new id of 128 random bits, letters and digits only."""
