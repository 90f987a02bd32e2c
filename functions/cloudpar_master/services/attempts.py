from collections import OrderedDict

REMEMBERED = 1_000


class Attempts:
    """Names for the receptions of a retrieval.

    AWS repeats no dispatcher of which a message was deleted, as stale ones are: behind those, the next one has another
    name. The request may come again, since its answer got lost: then it begins with the name that brought its chunks.
    """

    def __init__(self) -> None:
        self._stale: OrderedDict[str, int] = OrderedDict()

    def name(self, attempt_id: str) -> str:
        """What to receive by now."""
        stale = self._stale.get(attempt_id, 0)
        return f"{attempt_id}+{stale}" if stale else attempt_id

    def went_stale(self, attempt_id: str) -> None:
        """Everything that came by this name has been deleted."""
        self._stale[attempt_id] = self._stale.get(attempt_id, 0) + 1
        if len(self._stale) > REMEMBERED:
            self._stale.popitem(last=False)
