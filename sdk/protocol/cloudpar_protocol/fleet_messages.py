"""The list of workers. Only operators see it, since it shows hosts and packages of all accounts."""

from msgspec import Struct

from .message import Message
from .payloads import Count


class ListWorkers(Message, frozen=True, kw_only=True):
    """List the workers that sent a request lately, and what each of them cannot run.

    "Lately" is the last minute, unless the master's policy sets a different time (`fleet_memory_s`).
    """


class SetAside(Struct, frozen=True, kw_only=True):
    """A package that a worker cannot run, so that its tasks go to other workers.

    Attributes:
        lacks: The thing that the worker lacks, as a text for users, such as "no module named 'numpy'". Empty if the
            master has not recorded the reason or does not look it up, for example because the package was deleted or
            the list has many packages.
    """

    package_id: str
    lacks: str = ""


class ConnectedWorker(Struct, frozen=True, kw_only=True):
    """One worker, as its last retrieval described it.

    Attributes:
        host: The name of the worker's machine; empty if the worker is of an earlier release, or has sent no retrieval
            since the master started.
        executors: The number of the worker's executors, busy or not; 0 if the worker has sent no retrieval since the
            master started.
        pythons: The minor versions of Python that the worker runs; empty in the same cases as `host`.
        seen_at: The time of the worker's last request, in seconds since 1970. The true time may be some seconds later.
        set_aside: The packages that the worker cannot run.
    """

    worker_id: str
    host: str = ""
    executors: Count = 0
    pythons: list[str] = []
    seen_at: float
    set_aside: list[SetAside] = []


class ListWorkersReply(Message, frozen=True, kw_only=True):
    """The workers, ordered by host. `now` is the master's clock, for comparison with `seen_at`."""

    now: float
    workers: list[ConnectedWorker] = []
