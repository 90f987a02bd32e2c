"""Counts the execution time of accounts or packages, so that the one that has received the least is next."""

from typing import Final

REMEMBERED: Final = 1_000
"""For how many keys the time is remembered. A further key replaces the key whose last result is the oldest. The
replaced key then counts as new.
"""


class ExecutionTimes:
    """The execution time that the tasks of each key (an account or a package) have received here, in microseconds.

    A new key starts with the time of the key that is furthest behind. This time is called the level.
    """

    def __init__(self) -> None:
        self._level_us = 0
        self._finish_us: dict[str, int] = {}
        self._last_us: dict[str, int] = {}

    def start_us(self, key: str) -> int:
        """Return the time of a key, but at least the level."""
        return max(self._level_us, self._finish_us.get(key, 0))

    def before_last_us(self, key: str) -> int:
        """Return the time of a key without its last results."""
        return self.start_us(key) - self._last_us.get(key, 0)

    def least_us(self, key: str) -> int:
        """Return the smallest time of this key and all other remembered keys."""
        return max(self._level_us, min([self.start_us(key), *self._finish_us.values()]))

    def join(self, key: str, start_us: int) -> None:
        """Raise the time of a key to `start_us`, if it is less."""
        if start_us > self.start_us(key):
            self.add(key, start_us - self.start_us(key))
            self._last_us[key] = 0

    def rise(self, level_us: int) -> None:
        """Raise the level to this time. The level never goes down."""
        self._level_us = max(self._level_us, level_us)

    def add(self, key: str, ran_us: int) -> None:
        """Add the execution time of results to that of a key."""
        finish_us = self.start_us(key) + ran_us
        self._finish_us.pop(key, None)
        self._finish_us[key], self._last_us[key] = finish_us, ran_us
        if len(self._finish_us) > REMEMBERED:
            longest_ago = next(iter(self._finish_us))
            del self._finish_us[longest_ago], self._last_us[longest_ago]
