"""A process that dies at a chosen port call."""

from typing import Any, Literal, NamedTuple, TypeVar, cast

from master.stores import Stores

PortT = TypeVar("PortT")

Side = Literal["before", "after"]


class Crash(BaseException):
    """The process is dead: nothing in it may catch this."""


class CrashPoint(NamedTuple):
    """The k-th port call of a run, from 0, before or after it takes effect."""

    call: int
    side: Side


class Fuse:
    """Counts the port calls of a run, over all its processes, and kills one of these at the crash point.

    Attributes:
        calls: Their names.
        away_s: How long after a crash the next process starts.
    """

    def __init__(self, at: CrashPoint | None = None) -> None:
        self.calls: list[str] = []
        self.away_s = 0.0
        self._at = at

    def wire(self, stores: Stores) -> Stores:
        """The adapters as the master gets them."""
        return stores._replace(
            packages=fused(stores.packages, "packages", self),
            accounts=fused(stores.accounts, "accounts", self),
            queue=fused(stores.queue, "queue", self),
            registry=fused(stores.registry, "registry", self),
            blobs=fused(stores.blobs, "blobs", self),
        )

    def passes(self, error: Exception) -> bool:
        """Whether the master tells its caller of this error that he may try again."""
        return False

    def call(self, name: str, method: Any, *arguments: Any, **named: Any) -> Any:
        """Carry a port call out, or die of it."""
        number = len(self.calls)
        self.calls.append(name)
        if self._at == (number, "before"):
            raise Crash(f"before call {number}, {name}")
        answer = method(*arguments, **named)
        if self._at == (number, "after"):
            raise Crash(f"after call {number}, {name}")
        return answer


class _Fused:
    def __init__(self, port: Any, name: str, fuse: Fuse) -> None:
        self._port = port
        self._name = name
        self._fuse = fuse

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            return self._fuse.call(f"{self._name}.{method}", getattr(self._port, method), *arguments, **named)

        return call


def fused(port: PortT, name: str, fuse: Fuse) -> PortT:
    """The same port, each of whose calls may be the last."""
    return cast("PortT", _Fused(port, name, fuse))
