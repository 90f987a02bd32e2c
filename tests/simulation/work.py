"""What tasks do: how long they last, and which of them end their executor or their whole host."""

from random import Random


class Work:
    """Drawn from the seed; each execution of a task lasts differently, so that a wrong charge shows."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._mean_us: dict[str, int] = {}
        self._deadly = random.choice([None, None, "executor", "host"])
        self.longest_us = random.choice([20_000, 200_000, 1_500_000])

    def duration_us(self, package_id: str) -> int:
        """Of one execution."""
        mean_us = self._mean_us.setdefault(package_id, self._random.randrange(1_000, self.longest_us // 2))
        return self._random.randrange(mean_us // 2, 2 * mean_us)

    def kills_executor(self, package_id: str, index: int) -> bool:
        """As a segmentation fault does."""
        return self._deadly == "executor" and index % 7 == 3

    def kills_host(self, package_id: str, index: int) -> bool:
        """As running out of memory may."""
        return self._deadly == "host" and index == 3
