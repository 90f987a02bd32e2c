"""A history, sorted by package and by account. Field names are those of docs/openapi.json.

This module shares no code with the project or with the tests of other folders, so that it does not repeat their errors.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from histories.history import Call

RUNNING, EXPIRED = "running", "expired"
WHOLE = {"completed", "error"}
"""A package in one of these states has a result for each task that was not cancelled."""

Value = Callable[[Any, int], Any]
"""Returns the value of a package's task, from the request that started the package and the task's index."""


class Violation(NamedTuple):
    """A rule of docs/protocol.md, and the calls that contradict it."""

    rule: str
    text: str
    calls: tuple[Call, ...]

    def __str__(self) -> str:
        return "\n    ".join([f"{self.rule}: {self.text}", *map(str, self.calls)])


class Result(Struct, array_like=True, frozen=True):
    """A task's result."""

    index: int
    outcome: str
    duration_us: int
    data: Any = None
    blob: Any = None
    message: str | None = None
    traceback: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    seal: Any = None
    input: str | None = None


class Progress(Struct, frozen=True):
    tasks: int
    done: int = 0
    errors: int = 0
    charged_us: int = 0


class Status(Struct, frozen=True):
    """What an await says about a package."""

    package_id: str
    state: str
    cursor: int
    progress: Progress
    more: bool = False
    results: list[Result] = []
    failed: list[tuple[int, int]] = []
    cancelled: list[tuple[int, int]] = []
    reason: str | None = None
    settled: bool = False


class Read(NamedTuple):
    """One await of a package: the results that were committed after one position, up to another."""

    call: Call
    after: int
    status: Status


class Seen(NamedTuple):
    """A state of a package that an answer mentioned. A cancel mentions no progress, and only an await `settled`."""

    call: Call
    state: str
    charged_us: int
    reason: str | None = None
    progress: Progress | None = None
    settled: bool = False


@dataclass
class Package:
    """All calls about one package.

    Attributes:
        starts: The successful starts.
        attempts: All requests that can have started it, also those without an answer.
        lacking: Awaits that did not find it.
    """

    id: str
    account: str = ""
    request: Any = None
    starts: list[Call] = field(default_factory=list)
    attempts: list[Call] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    cancels: list[Call] = field(default_factory=list)
    acknowledged: list[Call] = field(default_factory=list)
    lacking: list[Call] = field(default_factory=list)

    @property
    def n(self) -> int:
        return int(self.request["n"])

    @property
    def kept(self) -> list[Read]:
        """The awaits that found the package with its results."""
        return [read for read in self.reads if read.status.state != EXPIRED]

    def ends(self) -> Iterator[Read]:
        """Yield the awaits that read the last results of the package after its end."""
        return (read for read in self.kept if read.status.state != RUNNING and not read.status.more)

    def effective_cancels(self) -> list[Call]:
        """Return the cancels that took effect, or may have."""
        return [call for call in self.cancels if not call.refused]

    def effective_acknowledgements(self) -> list[Call]:
        """Return those of its own account: the master ignores those of others."""
        return [call for call in self.acknowledged if not call.refused and call.account == self.account]


class Books:
    """The calls of a history by package.

    Attributes:
        calls: All calls, in the order of their requests.
        complete: Whether the clients read each package until it had ended and was settled, unless it was acknowledged.
    """

    def __init__(self, calls: Sequence[Call], value: Value, *, complete: bool) -> None:
        self.calls = calls
        self.complete = complete
        self.value = value
        self._packages: dict[str, Package] = {}
        self._by_key: dict[tuple[str, str], Package] = {}
        for call in calls:
            if call.route == "start_tasks" and call.ok:
                self._start(call)
        for call in calls:
            self._file(call)

    @property
    def packages(self) -> list[Package]:
        """The packages whose start was answered."""
        return [package for package in self._packages.values() if package.starts]

    @property
    def strangers(self) -> list[Package]:
        """The packages that answers mention although no client learned of their start."""
        return [package for package in self._packages.values() if not package.starts]

    def to(self, *routes: str) -> Iterator[Call]:
        """Yield the calls of these routes."""
        return (call for call in self.calls if call.route in routes)

    def _package(self, package_id: str) -> Package:
        return self._packages.setdefault(package_id, Package(package_id))

    def _start(self, call: Call) -> None:
        package = self._package(call.reply["package_id"])
        package.account, package.request = call.account, call.request
        package.starts.append(call)
        self._by_key[call.account, call.request["idempotency_key"]] = package

    def _file(self, call: Call) -> None:
        if call.route == "start_tasks" and not call.refused:
            package = self._by_key.get((call.account, call.request["idempotency_key"]))
            if package is not None:
                package.attempts.append(call)
        elif call.route == "await_tasks" and call.ok:
            self._await(call)
        elif call.route == "cancel_tasks":
            self._cancel(call)
        elif call.route == "acknowledge":
            for package_id in call.request["package_ids"]:
                self._package(package_id).acknowledged.append(call)
        elif call.route == "list_packages" and call.ok:
            for summary in call.reply["packages"]:
                progress = msgspec.convert(summary["progress"], Progress)
                seen = Seen(call, summary["state"], progress.charged_us, summary.get("reason"), progress)
                self._package(summary["package_id"]).seen.append(seen)

    def _await(self, call: Call) -> None:
        cursors = {asked["package_id"]: asked.get("cursor", 0) for asked in call.request["packages"]}
        for said in call.reply["packages"]:
            status = msgspec.convert(said, Status)
            package = self._package(status.package_id)
            # A status that the client did not request has no position to be compared with.
            package.reads.append(Read(call, cursors.get(status.package_id, status.cursor), status))
            progress = status.progress
            seen = Seen(call, status.state, progress.charged_us, status.reason, progress, status.settled)
            package.seen.append(seen)
        for package_id in call.reply.get("missing", {}):
            self._package(package_id).lacking.append(call)

    def _cancel(self, call: Call) -> None:
        package = self._package(call.request["package_id"])
        package.cancels.append(call)
        if call.ok:
            package.seen.append(Seen(call, call.reply["state"], call.reply.get("charged_us", 0)))


T = TypeVar("T")


def falls(items: Iterable[T], call: Callable[[T], Call], height: Callable[[T], int]) -> Iterator[tuple[T, T]]:
    """Yield pairs of an item and a lower one that a later call brought: at most one for each lower item."""
    known = list(items)
    early = iter(sorted((each for each in known if call(each).ended_ns is not None), key=lambda each: _end(call(each))))
    upcoming, highest = next(early, None), None
    for late in sorted(known, key=lambda each: call(each).began_ns):
        while upcoming is not None and _end(call(upcoming)) < call(late).began_ns:
            if highest is None or height(upcoming) > height(highest):
                highest = upcoming
            upcoming = next(early, None)
        if highest is not None and height(late) < height(highest):
            yield highest, late


def _end(call: Call) -> int:
    return call.ended_ns or 0


def numbers(ranges: Iterable[Sequence[int]]) -> set[int]:
    """Return the numbers of ranges [start, stop)."""
    return {number for start, stop in ranges for number in range(start, stop)}
