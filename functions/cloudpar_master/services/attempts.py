from cloudpar_master.core.recent import Recent

REMEMBERED = 1_000
"""How many retrievals with a new name are remembered. A forgotten retrieval starts with its first name again."""


class Attempts:
    """Names the calls by which a retrieval receives messages, so that the queue recognizes a repeated call.

    If a call is repeated with the same name, SQS returns the same messages, but only until one of them is deleted or
    extended. So after a retrieval has deleted messages that it could not lease, its next call needs a new name. The
    queue delivered the leased chunks to the call with the last of these names. So if the worker repeats the retrieval
    at this process, the first call of the repeated retrieval gets this last name.
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
