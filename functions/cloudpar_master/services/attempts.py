from typing import NamedTuple

from cloudpar_master.core.recent import Recent

REMEMBERED = 1_000
"""How many retrievals with a new name are remembered. A forgotten one starts with its first name again. As many workers
are remembered whose last retrieval left messages to delete; those of forgotten ones surface again."""


class _Deferred(NamedTuple):
    attempt_id: str
    receipts: list[str]


class Attempts:
    """Names the queue calls of retrievals, and keeps messages that may be deleted only after a retrieval.

    SQS repeats a call with the same name only until one of its messages is deleted. When a retrieval has deleted stale
    messages, its next call needs a new name. If the worker repeats the retrieval, the first call has the name that
    brought its chunks.
    """

    def __init__(self) -> None:
        self._stale = Recent[str, int](REMEMBERED)
        self._deferred = Recent[str, _Deferred](REMEMBERED)

    def name(self, attempt_id: str) -> str:
        """Return the name for the next call of a retrieval."""
        stale = self._stale.get(attempt_id, 0)
        return f"{attempt_id}+{stale}" if stale else attempt_id

    def went_stale(self, attempt_id: str) -> None:
        """Note that messages of the current name were deleted, so that SQS would refuse the name from now on."""
        self._stale[attempt_id] = self._stale.get(attempt_id, 0) + 1

    def defer(self, worker_id: str, attempt_id: str, receipts: list[str]) -> None:
        """Keep messages that came together with leases, and that are to be deleted once the worker has its leases."""
        self._deferred[worker_id] = _Deferred(attempt_id, receipts)

    def deferred(self, worker_id: str, attempt_id: str) -> list[str]:
        """Return the messages of an earlier retrieval of this worker, which may be deleted now.

        A new retrieval shows that the worker has its leases. If none comes, these messages surface again when their
        visibility ends.
        """
        found = self._deferred.get(worker_id)
        if found is None or found.attempt_id == attempt_id:
            return []
        return self._deferred.pop(worker_id).receipts
