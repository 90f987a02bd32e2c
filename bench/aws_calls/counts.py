"""Who called what: requests and units by purpose."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

Name = tuple[str, str]
"""Purpose, and what is counted."""


class Counts:
    """Everything that happened, each under the purpose of its time."""

    def __init__(self) -> None:
        self.of: Counter[Name] = Counter()
        self._purpose = "set up"

    def add(self, what: str, number: float = 1) -> None:
        """It happened so often."""
        self.of[self._purpose, what] += number  # type: ignore[assignment]  # units come in halves

    @contextmanager
    def during(self, purpose: str) -> Iterator["Counter[str]"]:
        """What happens meanwhile is for this purpose. Yields what happened, once it is over."""
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
