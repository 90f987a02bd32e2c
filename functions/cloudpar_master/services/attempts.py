from cloudpar_master.core.recent import Recent

REMEMBERED = 1_000
"""How many retrievals with a new name are remembered. A forgotten retrieval starts with its first name again."""


class Attempts:
    """Names the calls by which a retrieval receives messages, so that the queue recognizes a repeated call.

    SQS repeats a call with the same name only until one of the call's messages is deleted or extended. When a retrieval
    has deleted messages that it could not lease, its next call therefore needs a new name. The queue delivered the
    leased chunks to the call with the last of these names. If the worker repeats the retrieval at this process, the
    first call of the repeated retrieval therefore gets this last name.
    """

    def __init__(self) -> None:
        self._stale = Recent[str, int](REMEMBERED)

    def name(self, attempt_id: str) -> str:
        """Return the name for the next call of a retrieval."""
        stale = self._stale.get(attempt_id, 0)
        return f"{attempt_id}+{stale}" if stale else attempt_id

    def went_stale(self, attempt_id: str) -> None:
        """Record that SQS refuses the current name from now on, for example because a message was deleted."""
        self._stale[attempt_id] = self._stale.get(attempt_id, 0) + 1
