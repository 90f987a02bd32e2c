from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .task_queue import ANY, Fit


class WorkerRecord(NamedTuple):
    """What a worker reported in its last retrieval, and the time of its last request.

    `executors` is 0 if the registry does not have the worker's last report any more, and only beats came since then.
    """

    worker_id: str
    seen_at: float
    host: str = ""
    executors: int = 1
    fit: Fit = ANY


class WorkerRegistry(Protocol):
    """The workers that sent requests lately. If a registry forgets them, packages wait longer, but none fails."""

    def note(self, worker: WorkerRecord) -> None:
        """Store a worker's report. While a worker reports nothing new, its stored `seen_at` may lag about 90 s."""

    def beat(self, worker_id: str, now: float) -> None:
        """Record that a worker is alive; a beat says nothing else. The stored `seen_at` may lag about 90 s."""

    def leave(self, worker_id: str) -> None:
        """Remove a worker that has ended.

        Late beats do not register the worker again, and neither does a retrieval that a master still holds.
        """

    def workers(self, since: float, *, newest: bool = False) -> Sequence[WorkerRecord]:
        """Return the workers whose `seen_at` is at this time or later.

        Reports that other processes have received in the last seconds may be missing. With `newest` no report is
        missing, but on AWS the call then always costs a request.
        """

    def knows_all(self, now: float) -> bool:
        """Whether the registry has had time to hear of every live worker.

        After the registry was lost, this is False for some seconds.
        """
