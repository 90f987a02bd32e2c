from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable

REMEMBERED = 1_000
"""How many askers' places are remembered. One whose place is forgotten starts at the beginning."""


class RoundRobin:
    """Which packages an asker looks at next, when it cannot look at all of them in one go: each has its turn."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, str] = OrderedDict()

    def next(self, asker: str, package_ids: Iterable[str], most: int) -> list[str]:
        """At most `most` of the packages: those behind the last one that this asker looked at, and then the first."""
        ordered = sorted(package_ids)
        at = bisect_right(ordered, self._last.pop(asker, ""))
        chosen = [*ordered[at:], *ordered[:at]][:most]
        if len(chosen) < len(ordered):
            self._last[asker] = chosen[-1]
            if len(self._last) > REMEMBERED:
                self._last.popitem(last=False)
        return chosen
