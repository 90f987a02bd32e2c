"""The outstanding tasks of a package: its open pieces, how they are cut, divided and queued anew.

A head has room for so many entries (head.ENTRIES). What comes in order needs none of it. Results, give-backs and losses
from the middle of a chunk splinter it; when there is no room left for the splinters, the chunk is queued anew as a
whole, and what came of it is done again: slower, but the head stays small whatever workers send.
"""

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cloudpar_master.core import planning, ranges
from cloudpar_master.core.head import ENTRIES, Head, Piece
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.payloads import Range

SPLINTERS = 120
"""Entries that cutting leaves free for what splinters."""

SMALL_WINDOW = 8
"""So many chunks may be open even when cancelled tasks have taken nearly all the room."""

DEPTH = 24
"""The first piece may be halved so often beyond the bounds (10,000,000 tasks are halved 24 times): so that of lost
chunks there is always one that comes down to the single task that kills its workers."""


class Extract(NamedTuple):
    """How some tasks divide the open pieces: those that stay, those that go, and the former pieces of these."""

    kept: list[Piece]
    taken: list[Piece]
    touched: list[Piece]


def extract(head: Head, numbers: Sequence[Range], heard: int | None = None, *, only: bool = False) -> Extract:
    """Divide the open pieces, and change nothing.

    Args:
        head: The package.
        numbers: A sorted set of tasks.
        heard: A worker speaks of this generation, so its chunks are in the queue, or were.
        only: Take from this generation only.
    """
    kept: list[Piece] = []
    taken: list[Piece] = []
    touched: list[Piece] = []
    low, high = (numbers[0][0], numbers[-1][1]) if numbers else (0, 0)
    for piece in head.open:
        if piece.end <= low or piece.start >= high or (only and piece.generation != heard):
            kept.append(piece)
            continue
        whole = [(piece.start, piece.end)]
        hit = ranges.intersect(whole, numbers)
        if not hit:
            kept.append(piece)
            continue
        touched.append(piece)
        part = replace(piece, sent=piece.sent or piece.generation == heard)
        taken += [replace(part, start=start, end=end) for start, end in hit]
        kept += [replace(part, start=start, end=end) for start, end in ranges.subtract(whole, hit)]
    return Extract(kept, taken, touched)


def take(
    head: Head, numbers: Sequence[Range], heard: int | None = None, *, only: bool = False, comes_back: bool = False
) -> list[Piece]:
    """Take tasks out of the open pieces, as `extract` divides them.

    `comes_back` says that every piece taken will be an entry again. Returns what was taken: nothing, if the head has no
    room for the splinters; then the chunks are queued anew.
    """
    out = extract(head, numbers, heard, only=only)
    more = len(out.kept) + (len(out.taken) if comes_back else 0) - len(head.open)
    if more > max(head.room, 0):
        anew = {"generation": head.version, "sent": False}
        head.open = [replace(each, **anew) if each in out.touched else each for each in head.open]
        return []
    head.open = out.kept
    return out.taken


def queue(head: Head, start: int, end: int, losses: int = 0) -> None:
    """Make a chunk of some tasks, to be sent."""
    insort(head.open, Piece(start, end, head.version, losses=losses), key=_start)


def recut(head: Head, pieces: Sequence[Piece], policy: Policy, losses: int = 0) -> None:
    """Queue tasks again as a new generation, in chunks of today's size, or larger ones if there is little room.

    `losses` is what whoever gives them back has heard of; the count begins anew only when a lost chunk is divided.
    """
    for left, piece in zip(range(len(pieces) - 1, -1, -1), pieces, strict=True):
        start = piece.start
        while start < piece.end:
            rest = piece.end - start
            parts = max(1, (head.room - left) // 2)
            end = start + max(_chunk(head, rest, policy), -(-rest // parts))
            queue(head, start, min(end, piece.end), max(losses, piece.losses))
            start = end


def halve(head: Head, piece: Piece) -> None:
    """Queue a lost piece again as two, if there is room."""
    spare = DEPTH if piece == head.open[0] else 0
    head.open.remove(piece)
    if head.room + spare < 2:
        queue(head, piece.start, piece.end)
        return
    middle = (piece.start + piece.end + 1) // 2
    queue(head, piece.start, middle)
    queue(head, middle, piece.end)


def cut(head: Head, policy: Policy) -> None:
    """Refill the window from the uncut tasks."""
    most = min(head.window, max(SMALL_WINDOW, ENTRIES - len(head.cancelled) - len(head.stopping) - SPLINTERS))
    while head.uncut and len(head.open) < most and not head.dry:
        free = ranges.subtract([(head.cursor, head.tasks)], head.cancelled)
        if not free:
            head.cursor = head.tasks
            return
        start, end = free[0]
        end = start + _chunk(head, end - start, policy)
        queue(head, start, end)
        head.cursor = end


def _chunk(head: Head, rest: int, policy: Policy) -> int:
    if head.chunksize is not None:
        return min(head.chunksize, rest)
    mean_us = max(head.mean_us, 1.0) if head.measured else 0.0
    return planning.chunk_size(rest, head.tasks, planning.Pace(mean_us, head.executors, head.window), policy)


def _start(piece: Piece) -> int:
    return piece.start
