from cloudpar_master.core.recent import Recent

REMEMBERED = 1_000
"""How many retrievals are remembered. A forgotten one starts with its first name again."""


class Attempts:
    """Names the queue calls of retrievals.

    SQS replays a receive only until one of its messages is deleted. When a retrieval has deleted stale messages, its
    next call needs a new name. A retry of the same request starts with the name that brought its chunks.
    """

    def __init__(self) -> None:
        self._stale = Recent[str, int](REMEMBERED)

    def name(self, attempt_id: str) -> str:
        """Return the name for the next call."""
        stale = self._stale.get(attempt_id, 0)
        return f"{attempt_id}+{stale}" if stale else attempt_id

    def went_stale(self, attempt_id: str) -> None:
        """Note that all messages of the current name were deleted. SQS would refuse the name from now on."""
        self._stale[attempt_id] = self._stale.get(attempt_id, 0) + 1
