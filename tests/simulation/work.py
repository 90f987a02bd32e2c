"""What tasks do: how long they last, and which of them end their executor or their whole host."""

from random import Random


class Work:
    """Draws durations from the seed. Each execution has another one, so that a wrong charge is noticed."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._mean_us: dict[str, int] = {}
        self._deadly = random.choice([None, None, "executor", "host"])
        self.longest_us = random.choice([20_000, 200_000, 1_500_000])

    def duration_us(self, package_id: str) -> int:
        """Draw the duration of one execution."""
        mean_us = self._mean_us.setdefault(package_id, self._random.randrange(1_000, self.longest_us // 2))
        return self._random.randrange(mean_us // 2, 2 * mean_us)

    def kills_executor(self, package_id: str, index: int) -> bool:
        """Return whether a task ends its executor, as a segmentation fault does."""
        return self._deadly == "executor" and index % 7 == 3

    def kills_host(self, package_id: str, index: int) -> bool:
        """Return whether a task ends its host, as running out of memory may."""
        return self._deadly == "host" and index == 3
