"""A master's clock for tests."""

NOW = 1_800_000_000.0
"""When the tests' clocks start, in seconds since 1970."""


class SetClock:
    """A clock that a test moves.

    Attributes:
        date_ahead_s: How far the date is ahead of the master's time, as after the machine's clock was set.
    """

    def __init__(self) -> None:
        self.time = NOW
        self.date_ahead_s = 0.0

    def now(self) -> float:
        """Return the seconds since 1970, UTC."""
        return self.time

    def date(self, at: float) -> float:
        """Return a time by the machine's clock."""
        return at + self.date_ahead_s

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.time += seconds
