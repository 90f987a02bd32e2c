"""The record of a run: what each client asked, what it was answered, and when. One event is one line of JSON.

All instants are of the machine's monotonic clock, which its processes share, so that events of several clients can be
compared. A call that got no answer, because its connection or its client ended, has no second event: it may have taken
effect at any time since, or not at all.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

SUCCESS = 200


class Begun(Struct, tag="begun", frozen=True):
    """A client is about to send a request."""

    client: str
    number: int
    at_ns: int
    account: str
    route: str
    request: Any


class Answered(Struct, tag="answered", frozen=True):
    """The client has read the whole answer: `reply` is the reply, or the error if the status is not 200."""

    client: str
    number: int
    at_ns: int
    status: int
    reply: Any


class Fault(Struct, tag="fault", frozen=True):
    """A fault of the plan, for people who read the record. The checker does not use it."""

    at_ns: int
    what: str


Event = Begun | Answered | Fault


class Recorder:
    """Appends events to a file of one process. Each event is one write, so that a kill leaves no half event behind."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def add(self, event: Event) -> None:
        os.write(self._file, msgspec.json.encode(event) + b"\n")

    def fault(self, what: str) -> None:
        self.add(Fault(time.monotonic_ns(), what))

    def close(self) -> None:
        os.close(self._file)


@dataclass(frozen=True, eq=False)
class Call:
    """A request and its answer. Without an answer, `ended_ns`, `status` and `reply` are None."""

    client: str
    account: str
    route: str
    request: Any
    began_ns: int
    ended_ns: int | None = None
    status: int | None = None
    reply: Any = None

    @property
    def ok(self) -> bool:
        return self.status == SUCCESS

    @property
    def refused(self) -> bool:
        """Whether the answer says that the request had no effect."""
        return self.status is not None and 400 <= self.status < 500

    def before(self, other: "Call") -> bool:
        """Whether this call was answered before the other one was sent."""
        return self.ended_ns is not None and self.ended_ns < other.began_ns

    def __str__(self) -> str:
        instants = f"{self.began_ns / 1e9:.6f} to {'-' if self.ended_ns is None else f'{self.ended_ns / 1e9:.6f}'}"
        said = msgspec.json.encode([self.request, self.status, self.reply]).decode()
        return f"{instants} {self.client} ({self.account}) {self.route} {said[:1500]}"


def calls(events: Iterable[Event]) -> list[Call]:
    """Join requests with their answers, in the order in which the requests were sent."""
    begun: dict[tuple[str, int], Begun] = {}
    answered: dict[tuple[str, int], Answered] = {}
    for event in events:
        if isinstance(event, Begun):
            begun[event.client, event.number] = event
        elif isinstance(event, Answered):
            answered[event.client, event.number] = event
    joined = [_joined(asked, answered.get(at)) for at, asked in begun.items()]
    return sorted(joined, key=lambda call: call.began_ns)


def _joined(asked: Begun, answered: Answered | None) -> Call:
    end = (None, None, None) if answered is None else (answered.at_ns, answered.status, answered.reply)
    return Call(asked.client, asked.account, asked.route, asked.request, asked.at_ns, *end)


def read(folder: Path) -> Iterator[Event]:
    """Yield the events of all processes of a run."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):  # a full disk may cut the last event
                yield msgspec.json.decode(line, type=Event)
