from collections import Counter
from collections.abc import Sequence
from itertools import count, islice
from threading import RLock
from typing import Final

import msgspec

from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec
from cloudpar_master.core.head import stored as heads
from cloudpar_master.ports import AtWork, InboxItem, Opened, ResultPage, Running
from cloudpar_protocol.payloads import TaskResult

INBOX_BYTES = 1_000_000
ALONE: Final = RLock()
"""Makes every port call one step, also for the threads of a race."""

_encode = msgspec.msgpack.Encoder().encode
_specs = msgspec.msgpack.Decoder(Spec)
_events: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(Event)
_results = msgspec.msgpack.Decoder(list[TaskResult])


class Package(msgspec.Struct):
    """A stored package: bytes, as in a table, so that no caller holds an object that another one changes."""

    package_id: str
    number: int
    account_id: str
    started_at: float
    spec: bytes
    head: bytes
    version: int
    unsettled: bool
    uncut: bool
    due_at: float
    claimed_until: float = 0.0
    inbox: dict[str, bytes] = {}
    pages: dict[int, bytes] = {}


def _head(stored: Package) -> Head:
    """Decode a head. As in the real stores, a stand-in replaces a damaged one."""
    try:
        return heads.decode(stored.head)
    except ValueError as error:
        return Head.stand_in(stored.package_id, stored.account_id, stored.started_at, stored.version, str(error))


class MemoryPackageStore:
    """Packages in a dictionary."""

    def __init__(self, packages: dict[str, Package], numbers: "count[int]") -> None:
        self._packages = packages
        self._numbers = numbers

    def create(self, spec: Spec, head: Head) -> Spec:
        with ALONE:
            stored = self._packages.get(spec.package_id)
            if stored is not None:
                return _specs.decode(stored.spec)
            self._packages[spec.package_id] = Package(
                package_id=spec.package_id, number=next(self._numbers), account_id=spec.account_id,
                started_at=spec.started_at, spec=_encode(spec), head=heads.encode(head), version=head.version,
                unsettled=not head.life.settled, uncut=head.cuttable, due_at=spec.started_at,
            )  # fmt: skip
        return spec

    def spec(self, package_id: str) -> Spec | None:
        stored = self._packages.get(package_id)
        return None if stored is None else _specs.decode(stored.spec)

    def load(self, package_id: str) -> Head | None:
        stored = self._packages.get(package_id)
        return None if stored is None else _head(stored)

    def find(self, package_ids: Sequence[str]) -> dict[str, tuple[Head, Spec | None]]:
        found: dict[str, tuple[Head, Spec | None]] = {}
        for package_id in dict.fromkeys(package_ids):
            stored = self._packages.get(package_id)
            if stored is not None:
                found[package_id] = _head(stored), _specs.decode(stored.spec)
        return found

    def heads(self, package_ids: Sequence[str]) -> list[Head]:
        return [head for head in map(self.load, package_ids) if head]

    def open(self, package_id: str, limit: int) -> Opened | None:
        with ALONE:
            stored = self._packages.get(package_id)
            if stored is None:
                return None
            items: list[InboxItem] = []
            room = INBOX_BYTES
            for key, body in stored.inbox.items():
                room -= len(body)
                if len(items) == limit or (items and room < 0):
                    return Opened(_head(stored), items, more=True)
                items.append(InboxItem(key, _events.decode(body)))
            return Opened(_head(stored), items, more=False)

    def save(self, head: Head, due_at: float, results: Sequence[TaskResult] = ()) -> bool:
        with ALONE:
            stored = self._packages.get(head.package_id)
            if stored is None or (stored.version, stored.started_at) != (head.version - 1, head.started_at):
                return False
            stored.head, stored.version, stored.due_at = heads.encode(head), head.version, due_at
            stored.unsettled, stored.uncut = not head.life.settled, head.cuttable
            if results:
                stored.pages[head.version] = _encode(results)
            return True

    def append(self, package_id: str, items: Sequence[tuple[str, Event]], born: float | None = None) -> None:
        with ALONE:
            stored = self._packages.get(package_id)
            for key, event in items if stored else ():
                stored.inbox.setdefault(key, _encode(event))  # type: ignore[union-attr]

    def claim(self, package_id: str, now: float, until: float) -> bool:
        with ALONE:
            stored = self._packages.get(package_id)
            if stored is not None and now < stored.claimed_until <= 2 * until - now:
                return False
            if stored is not None:
                stored.claimed_until = until
            return True

    def delete_events(self, package_id: str, keys: Sequence[str]) -> None:
        with ALONE:
            stored = self._packages.get(package_id)
            for key in keys if stored else ():
                stored.inbox.pop(key, None)  # type: ignore[union-attr]

    def pages(self, package_id: str, after: int, until: int, limit_bytes: int) -> list[ResultPage]:
        with ALONE:
            stored = self._packages.get(package_id)
            pages: list[ResultPage] = []
            room = limit_bytes
            for version in sorted(stored.pages) if stored else ():
                if after < version <= until:
                    body = stored.pages[version]  # type: ignore[union-attr]
                    room -= len(body)
                    if pages and room < 0:
                        break
                    pages.append(ResultPage(version, _results.decode(body)))
            return pages

    def due(self, now: float, limit: int) -> list[str]:
        with ALONE:
            due = sorted((each.due_at, package_id) for package_id, each in self._packages.items() if each.due_at <= now)
            return [package_id for _, package_id in due[:limit]]

    def defer(self, package_id: str, now: float, until: float) -> None:
        with ALONE:
            stored = self._packages.get(package_id)
            if stored is not None and stored.due_at <= now:
                stored.due_at = until

    def uncut(self) -> list[str]:
        with ALONE:
            uncut = ((each.started_at, package_id) for package_id, each in self._packages.items() if each.uncut)
            return [package_id for _, package_id in sorted(uncut)]

    def of_account(self, account_id: str | None, limit: int) -> list[Head]:
        return [_head(stored) for stored in self._newest(account_id, limit)]

    def running(self, account_id: str) -> Running:
        counted = [Running.of(head) for head in self.running_heads(account_id)]
        return Running(*(sum(getattr(each, name) for each in counted) for name in Running._fields))

    def stored_bytes(self, account_id: str) -> int:
        return sum(_head(each).counted_bytes for each in self._newest(account_id, len(self._packages)))

    def running_heads(self, account_id: str) -> list[Head]:
        return [head for head in self.unsettled(account_id) if not head.life.ended]

    def unsettled(self, account_id: str) -> list[Head]:
        with ALONE:
            theirs = [each for each in self._packages.values() if each.account_id == account_id and each.unsettled]
        return [_head(stored) for stored in theirs]

    def at_work(self, limit: int) -> AtWork:
        with ALONE:
            unsettled = sorted(
                (each for each in self._packages.values() if each.unsettled), key=lambda each: each.started_at
            )
        before = Counter[str]()
        turns: list[tuple[int, Head]] = []
        for each in unsettled:
            if not (head := _head(each)).life.ended:
                turns.append((before[head.account_id], head))
                before[head.account_id] += 1
        running = [head for _, head in sorted(turns, key=lambda turn: turn[0])]
        return AtWork(running[:limit], len(running[limit:]))

    def _newest(self, account_id: str | None, limit: int) -> list[Package]:
        with ALONE:
            theirs = [each for each in self._packages.values() if account_id in {None, each.account_id}]
            newest = sorted(theirs, key=lambda each: (-each.started_at, each.number))
            return list(islice(newest, limit))

    def delete_pages(self, package_id: str) -> bool:
        with ALONE:
            stored = self._packages.get(package_id)
            if stored is not None:
                spec = _specs.decode(stored.spec)
                stored.spec = _encode(spec.freed())
                stored.pages.clear()
            return True

    def forget(self, head: Head) -> bool:
        with ALONE:
            stored = self._packages.get(head.package_id)
            if stored is None or (stored.version, stored.started_at) != (head.version, head.started_at):
                return False
            del self._packages[head.package_id]
            return True
