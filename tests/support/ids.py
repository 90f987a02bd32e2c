"""A master's ids for tests."""


class CountedIds:
    """Ids that are counted, so that a run can be repeated. Those of different names never meet."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._count = 0

    def fresh(self) -> str:
        """Return the next id."""
        self._count += 1
        return f"{self._name}{self._count:032x}"
