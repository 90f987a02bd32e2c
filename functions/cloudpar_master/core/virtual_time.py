"""Counts what accounts or packages have received, so that the one that has received the least is next.

Source: start-time fair queueing (Goyal, Vin and Cheng, 1996).
"""

from collections.abc import Collection, Iterable

REMEMBERED = 1_000
"""How many keys are remembered. A forgotten key counts as new."""


class VirtualTime:
    """Counts the work that each key (an account or a package) has received, in microseconds: the key's virtual time.

    A key that is new, or has received less than `now_us`, counts from `now_us`. `now_us` is the least virtual time that
    a waiting key had when `advance` was last called.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self._finish_us: dict[str, int] = {}
        self._last_start_us: dict[str, int] = {}

    def start_us(self, key: str) -> int:
        """Return the virtual time of a key, but at least `now_us`. The waiting key with the smallest result is next."""
        return max(self.now_us, self._finish_us.get(key, 0))

    def lead_us(self, key: str) -> int:
        """Return how far a key is ahead of `now_us`, without counting its last chunk.

        If that chunk counted, an account would lose the precedence of its first chunks because of a single long task.
        """
        return self._last_start_us.get(key, 0) - self.now_us

    def next(self, waiting: Collection[str]) -> str:
        """Return the waiting key that has received the least; of several such keys, the first.

        At least one key must wait.
        """
        self.advance(waiting)
        return min(waiting, key=self.start_us)

    def advance(self, waiting: Iterable[str]) -> None:
        """Move `now_us` forward to the least virtual time of these keys (at least one). It never goes back."""
        # No maximum with the old value is needed: `start_us` is at least `now_us`.
        self.now_us = min(map(self.start_us, waiting))

    def charge(self, key: str, cost_us: int) -> None:
        """Add an amount of work to the work that a key has received."""
        start_us = max(self.now_us, self._finish_us.pop(key, 0))
        self._finish_us[key] = start_us + cost_us
        self._last_start_us[key] = start_us
        if len(self._finish_us) > REMEMBERED:
            longest_ago = next(iter(self._finish_us))
            del self._finish_us[longest_ago], self._last_start_us[longest_ago]

    def refund(self, key: str, cost_us: int) -> None:
        """Take back the charge for a chunk of which a worker gave back all tasks, if the key is still remembered."""
        if key in self._finish_us:
            self._finish_us[key] -= cost_us
            self._last_start_us[key] = min(self._last_start_us[key], self._finish_us[key])
