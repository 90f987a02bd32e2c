from cloudpar_master.core.recent import Recent

REMEMBERED = 1_000
"""How many retrievals with a new name are remembered. A forgotten one starts with its first name again."""


class Attempts:
    """Names the queue calls of retrievals.

    SQS repeats a call with the same name only until one of its messages is deleted or extended. When a retrieval has
    deleted messages that it could not lease, its next call needs a new name. If the worker repeats the retrieval at
    this process, its first call has the last of these names, by which its chunks came.
    """

    def __init__(self) -> None:
        self._stale = Recent[str, int](REMEMBERED)

    def name(self, attempt_id: str) -> str:
        """Return the name for the next call of a retrieval."""
        stale = self._stale.get(attempt_id, 0)
        return f"{attempt_id}+{stale}" if stale else attempt_id

    def went_stale(self, attempt_id: str) -> None:
        """Note that SQS refuses the current name from now on, for example because its messages were deleted."""
        self._stale[attempt_id] = self._stale.get(attempt_id, 0) + 1
