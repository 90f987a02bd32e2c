"""Which workers there are: for the operator, since hosts and the packages of all accounts are no account's business."""

from msgspec import Struct

from .limits import PROTOCOL_VERSION
from .payloads import Count


class ListWorkers(Struct, frozen=True, kw_only=True):
    """List the workers that sent a request within the last minute, and what each of them cannot run."""

    v: int = PROTOCOL_VERSION


class SetAside(Struct, frozen=True, kw_only=True):
    """A package that a worker cannot run, so that its tasks go to other workers.

    Attributes:
        lacks: For people: "no module named 'numpy'". Empty: the package names other workers, or was deleted.
    """

    package_id: str
    lacks: str = ""


class ConnectedWorker(Struct, frozen=True, kw_only=True):
    """One worker, as its last retrieval described it.

    Attributes:
        host: The name of its machine; empty if the worker is of an earlier release, or has sent no retrieval since
            the master started.
        executors: How many it has, busy or not; 0: it has sent no retrieval since the master started.
        pythons: The minor versions of Python that it runs; empty as for `host`.
        seen_at: When it last sent a request, in seconds since 1970; may be some seconds old.
        set_aside: The packages that it cannot run.
    """

    worker_id: str
    host: str = ""
    executors: Count = 0
    pythons: list[str] = []
    seen_at: float
    set_aside: list[SetAside] = []


class ListWorkersReply(Struct, frozen=True, kw_only=True):
    """By host. `now` is the master's clock, which `seen_at` goes by."""

    v: int = PROTOCOL_VERSION
    now: float
    workers: list[ConnectedWorker] = []
