from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .task_queue import ANY, Fit


class WorkerRecord(NamedTuple):
    """What a worker reported with its last retrieval, and when it last sent a request.

    `executors` is 0 if the registry was lost, and the worker has sent only beats since then.
    """

    worker_id: str
    seen_at: float
    host: str = ""
    executors: int = 1
    fit: Fit = ANY


class WorkerRegistry(Protocol):
    """The workers that sent requests lately. If a registry forgets them, packages wait longer, but none fails."""

    def note(self, worker: WorkerRecord) -> None:
        """Keep what a worker reports. While a worker reports nothing new, its stored `seen_at` may lag some seconds."""
        ...

    def beat(self, worker_id: str, now: float) -> None:
        """Note that a worker is alive; a beat reports nothing else. The stored `seen_at` may lag here, too."""
        ...

    def leave(self, worker_id: str) -> None:
        """Remove a worker that has ended. Its requests that arrive late do not bring it back."""
        ...

    def workers(self, since: float, *, newest: bool = False) -> Sequence[WorkerRecord]:
        """Return the workers that sent a request at this time or later.

        What other processes noted may be missing for some seconds. With `newest` nothing is missing; that costs a call.
        """
        ...

    def knows_all(self, now: float) -> bool:
        """Whether every live worker has had time to send a request; False right after the registry was lost."""
        ...
