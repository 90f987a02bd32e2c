"""The state of the master as the specification has it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from cloudpar_master.core import quota
from cloudpar_master.core.head import Head, OpenRange
from cloudpar_master.ports import PackageStore
from cloudpar_master.services.chunk_text import ChunkText
from cloudpar_protocol.payloads import Range
from support.memory.stores import Data

from .mailbox import Letter
from .values import Record, State

UNIT_US = quota.FIRST_SLICE_US
"""A unit of compute time of the specification."""

UNPAID = -1
LOST = (0, 0)

COMPARED = (
    "state", "uncut", "open", "gen", "result", "cancelled", "stopping", "late", "settled", "used", "reserved", "next",
    "wanted", "paused", "exhausted",
)  # fmt: skip
"""The fields of a head in the specification that the master has, too."""

RESULT_BYTES = 1_000_000


class Drift(AssertionError):
    """The master does not do what the specification says."""


class View:
    """Sees the packages of one account as the specification does.

    Its generations count the folds that cut chunks; the master's are the versions of the head.
    """

    def __init__(self, count: int, ids: Mapping[str, str], packages: PackageStore, data: Data) -> None:
        self._count, self._ids, self._packages, self._books = count, ids, packages, data.books
        self._names = {package_id: name for name, package_id in ids.items()}
        self._generations: dict[str, dict[int, int]] = {name: {} for name in ids}

    def state(self, letters: Iterable[Letter], left: Mapping[str, list[Range]]) -> State:
        """Return the state.

        Args:
            letters: The messages in the queue.
            left: The tasks of the leases, by the receipts of their messages.
        """
        heads = {name: self.head(name) for name in self._ids}
        return {
            "head": {name: self._seen(name, head) for name, head in heads.items()},
            "slices": {name: self._slices(head) for name, head in heads.items()},
            "charge": {name: self._charge(head) for name, head in heads.items()},
            "queue": Counter(self.message(letter, left.get(letter.receipt, [])) for letter in letters),
        }

    def head(self, name: str) -> Head:
        """Return the stored head of a package."""
        head = self._packages.load(self._ids[name])
        assert head is not None
        return head

    def generation(self, name: str, version: int) -> int:
        """Return the specification's number of a generation; 0 if no head was seen with it."""
        return self._generations[name].get(version, 0)

    def message(self, letter: Letter, left: list[Range]) -> tuple[Any, ...]:
        """Return a message as `counted` does."""
        chunk = ChunkText.parse(letter.body)
        name, tasks = self._names[chunk.package_id], _numbers([(chunk.start, chunk.end)])
        wanted = _numbers(left) if letter.at == "leased" else frozenset()
        return name, tasks, self.generation(name, chunk.generation), chunk.losses, letter.receives, letter.at, wanted

    def _slices(self, head: Head) -> tuple[float, ...]:
        granted = self._books.slices.get(head.billing_id, {})
        return tuple(_units(granted[number]) for number in sorted(granted))

    def _charge(self, head: Head) -> float:
        charged_us = self._books.charged.get(head.billing_id)
        return UNPAID if charged_us is None else _units(charged_us)

    def _seen(self, name: str, head: Head) -> State:
        tasks, life, own, known = head.tasks, head.life, head.quota, self._generations[name]
        for version in sorted({each.generation for each in tasks.open} - set(known)):
            known[version] = len(known) + 1
        cancelled = _numbers(tasks.cancelled)
        uncut = _numbers([(tasks.cursor, tasks.count)]) - cancelled
        return {
            "state": life.reason if life.state == "failed" else life.state,
            "uncut": frozenset() if life.ended else uncut,
            "open": frozenset(self._range(name, each) for each in tasks.open),
            "gen": len(known),
            "result": self._results(head),
            "cancelled": cancelled,
            "stopping": _numbers(tasks.stopping),
            "late": life.ended and head.now >= (life.settle_at or 0.0),
            "settled": life.settled,
            "used": _units(own.used_us),
            "reserved": _units(own.reserved_us),
            "next": own.next_slice + 1,
            "wanted": _units(own.wanted_us),
            "paused": not life.ended and own.ask_again_at > head.now,
            "exhausted": own.exhausted,
        }

    def _range(self, name: str, each: OpenRange) -> Record:
        generation = self.generation(name, each.generation)
        return Record(tasks=_numbers([(each.start, each.end)]), gen=generation, sent=each.sent, losses=each.losses)

    def _results(self, head: Head) -> tuple[tuple[int, ...], ...]:
        pages = self._packages.pages(head.package_id, 0, head.page, RESULT_BYTES)
        found: dict[int, tuple[int, ...]] = {}
        for result in (each for page in pages for each in page.results):
            if result.index in found:
                raise Drift(f"task {result.index + 1} of {self._names[head.package_id]} has two results")
            text = (result.data or b"").decode()
            found[result.index] = LOST if result.outcome == "lost" else tuple(map(int, text.split(".")))
        return tuple(found.get(index, ()) for index in range(self._count))


def expected(state: State) -> State:
    """Return the part of a state of the specification that the master has, too."""
    return {
        "head": {name: {field: head[field] for field in COMPARED} for name, head in state["head"].items()},
        "slices": state["slices"],
        "charge": state["charge"],
        "queue": Counter(map(counted, state["queue"])),
    }


def counted(message: State) -> tuple[Any, ...]:
    """Return a message without the number of its copy, which only tells messages of a set apart."""
    return tuple(message[field] for field in ("package", "tasks", "gen", "losses", "receives", "at", "left"))


def _numbers(ranges: list[Range]) -> frozenset[int]:
    """Return the tasks of ranges, counted from 1 as in the specification."""
    return frozenset(index + 1 for start, end in ranges for index in range(start, end))


def _units(time_us: int) -> float:
    return time_us / UNIT_US
