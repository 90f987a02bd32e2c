from cloudpar_master.core.recent import Recent

REMEMBERED = 1_000
"""How many retrievals with a new name are remembered. A forgotten one starts with its first name again."""


class Attempts:
    """Names the queue calls of retrievals.

    SQS repeats a call with the same name only until one of its messages is deleted. When a retrieval has deleted stale
    messages, its next call needs a new name. If the worker repeats the retrieval, the first call has the name that
    brought its chunks.
    """

    def __init__(self) -> None:
        self._stale = Recent[str, int](REMEMBERED)

    def name(self, attempt_id: str) -> str:
        """Return the name for the next call of a retrieval."""
        stale = self._stale.get(attempt_id, 0)
        return f"{attempt_id}+{stale}" if stale else attempt_id

    def went_stale(self, attempt_id: str) -> None:
        """Note that messages of the current name were deleted, so that SQS would refuse the name from now on."""
        self._stale[attempt_id] = self._stale.get(attempt_id, 0) + 1
