"""Counts requests and units by purpose."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

Name = tuple[str, str]
"""A purpose, and the kind of request or unit that is counted."""


class Counts:
    """Adds up requests and units under the purpose that is current."""

    def __init__(self) -> None:
        self.of: Counter[Name] = Counter()
        self._purpose = "set up"

    def add(self, what: str, number: float = 1) -> None:
        self.of[self._purpose, what] += number  # type: ignore[assignment]  # units come in halves

    def move(self, made: Mapping[str, float], before: str, after: str) -> None:
        """Count these requests and units under another purpose."""
        for what, number in made.items():
            self.of[before, what] -= number  # type: ignore[assignment]  # units come in halves
            self.of[after, what] += number  # type: ignore[assignment]

    @contextmanager
    def during(self, purpose: str) -> Iterator["Counter[str]"]:
        """Count under this purpose inside the `with` block. At its end, the yielded counter gets the block's counts."""
        before, self._purpose = self._purpose, purpose
        earlier = self.of.copy()
        here: Counter[str] = Counter()
        try:
            yield here
        finally:
            for (name, what), number in self.of.items():
                if name == purpose and number != earlier[name, what]:
                    here[what] = number - earlier[name, what]
            self._purpose = before
