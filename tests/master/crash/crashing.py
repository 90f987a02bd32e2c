"""A process that dies at a chosen port call."""

from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

from support.stores import Stores

PortT = TypeVar("PortT")

Side = Literal["before", "after"]


class Crash(BaseException):
    """The process dies. No code in it may catch this."""


class CrashPoint(NamedTuple):
    """A crash immediately before or after the k-th port call of a run takes effect. Calls count from 0."""

    call: int
    side: Side


class Fuse:
    """Counts the port calls of all processes of a run, and kills one of the processes at the crash point.

    Attributes:
        calls: The names of the calls.
        firsts: The calls that are the first of a client's or worker's request, or of the timer's turn.
        away_s: Seconds between a crash and the start of the next process.
        breaks_many: Whether several calls may fail in one run.
    """

    def __init__(self, at: CrashPoint | None = None) -> None:
        self.calls: list[str] = []
        self.firsts: set[int] = set()
        self.away_s = 0.0
        self.breaks_many = False
        self._at = at

    def start_request(self) -> None:
        """Note that a request or a turn of the timer starts."""
        self.firsts.add(len(self.calls))

    def wire(self, stores: Stores) -> Stores:
        """Wrap the adapters for a master."""
        return stores._replace(
            packages=fused(stores.packages, "packages", self),
            accounts=fused(stores.accounts, "accounts", self),
            queue=fused(stores.queue, "queue", self),
            registry=fused(stores.registry, "registry", self),
            blobs=fused(stores.blobs, "blobs", self),
        )

    def passes(self, error: Exception) -> bool:
        """Return whether the master answers this error so that its caller tries again."""
        return False

    def call(self, name: str, method: Any, *arguments: Any, **named: Any) -> Any:
        """Carry a port call out, or die before or after it."""
        number = len(self.calls)
        self.calls.append(name)
        if self.dies(number, "before"):
            raise Crash(f"before call {number}, {name}")
        answer = method(*arguments, **named)
        if self.dies(number, "after"):
            raise Crash(f"after call {number}, {name}")
        return answer

    def dies(self, number: int, side: Side) -> bool:
        """Return whether the process dies there."""
        return self._at == (number, side)


def crash_points(uncrashed: Fuse, *, rival: bool) -> list[CrashPoint]:
    """Return all crash points of a run that differ.

    Within a request, a crash before a call equals one after the call before it, for what happens between them is only
    in the memory of the process that dies. With a rival they differ: it stores something between them.
    """
    return [
        CrashPoint(call, side)
        for call in range(len(uncrashed.calls))
        for side in get_args(Side)
        if rival or side == "after" or call in uncrashed.firsts
    ]


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
    """Wrap a port so that each of its calls may be the last."""
    return cast("PortT", _Fused(port, name, fuse))
