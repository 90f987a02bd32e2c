"""Cuts, divides and queues the open ranges of a package.

A head has room for a fixed number of entries, which are its open, cancelled and stopping ranges (head.ENTRIES). Results
that come in task order need no more entries. Results and give-backs from the middle of a chunk split its range into
several. If the head has no room for more ranges, the open ranges that have these tasks are queued again as a whole, and
their tasks run again. That is slower, but the head stays small.

A large fleet has thousands of open ranges. The ranges are sorted, so each fold looks only at the ranges that its events
name.
"""

from bisect import insort
from collections.abc import Container, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from cloudpar_master.core import planning
from cloudpar_master.core.head import ENTRIES, Head, OpenRange
from cloudpar_master.core.policy import Policy
from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import Range

RESERVED = 4_000
"""How many entries `refill` leaves free, if at least SMALL_WINDOW ranges are open. Partly finished chunks need these
entries, because they split into more ranges."""

SMALL_WINDOW = 8
"""How many chunks may be open even when cancelled and stopping ranges leave no entries for them. If no chunk could be
open, the package would not end before its lifetime is over."""

HALVINGS = 24
"""How many entries beyond ENTRIES the halving of the first open range may use. A chunk of 10,000,000 tasks is halved 24
times until it has one task. So even if a head is full, the first chunk can be halved until the task that kills its
workers is alone and fails. Then another chunk is the first, and in the end the package ends."""


class Extract(NamedTuple):
    """How a set of tasks divides the open ranges.

    Attributes:
        among: The positions, in `Tasks.open`, of the ranges between the first and the last of these tasks. All other
            open ranges stay as they are.
        kept: The parts of these ranges that stay open.
        taken: The parts of these ranges that contain the tasks.
        touched: The open ranges from which the parts in `taken` come.
    """

    among: range
    kept: list[OpenRange]
    taken: list[OpenRange]
    touched: list[OpenRange]

    def keep(self, head: Head) -> None:
        """Take the parts in `taken` out of the head."""
        head.tasks.open[self.among.start : self.among.stop] = self.kept


def extract(head: Head, numbers: Sequence[Range], heard: int | None = None, *, only: bool = False) -> Extract:
    """Divide the open ranges into the parts with these tasks (`numbers`), and the rest. The head is not changed.

    Args:
        head: The package.
        numbers: A sorted set of tasks.
        heard: The generation of the chunk that a worker or the queue has reported on; None if there is no report. A
            report shows that the chunk was sent.
        only: Whether to take only ranges of the generation `heard`.
    """
    places = head.tasks.among(numbers)
    kept: list[OpenRange] = []
    taken: list[OpenRange] = []
    touched: list[OpenRange] = []
    for each in head.tasks.open[places.start : places.stop]:
        whole = [(each.start, each.end)]
        hit = [] if only and each.generation != heard else ranges.intersect(whole, numbers)
        if not hit:
            kept.append(each)
            continue
        touched.append(each)
        part = replace(each, sent=each.sent or each.generation == heard)
        taken += [replace(part, start=start, end=end) for start, end in hit]
        kept += [replace(part, start=start, end=end) for start, end in ranges.subtract(whole, hit)]
    return Extract(places, kept, taken, touched)


def take(
    head: Head, numbers: Sequence[Range], heard: int | None = None, *, only: bool = False, comes_back: bool = False
) -> list[OpenRange]:
    """Take tasks out of the open ranges, as `extract` divides them.

    Args:
        head: The package.
        numbers: A sorted set of tasks.
        heard: See `extract`.
        only: See `extract`.
        comes_back: Whether each taken range will become an entry again, such as a new chunk or a cancelled range.

    Returns:
        The ranges that were taken. If the head has no room for the ranges that would result, nothing is taken. Then
        each open range that has some of the tasks is queued again as a whole.
    """
    opened = head.tasks.open
    out = extract(head, numbers, heard, only=only)
    more = len(out.kept) + (len(out.taken) if comes_back else 0) - len(out.among)
    if more > max(head.tasks.free_entries, 0):
        for at in out.among:
            if opened[at] in out.touched:
                # These ranges get a new generation: the queue has had messages of the old generation, and would drop a
                # repeated message.
                opened[at] = replace(opened[at], generation=head.version, sent=False)
        return []
    out.keep(head)
    return out.taken


def queue(head: Head, start: int, end: int, losses: int = 0) -> None:
    """Make a chunk of some tasks, which the master sends later."""
    # The ranges stay in order: `commit` walks along the open ranges and the results together, and would miss a range
    # that is out of order.
    insort(head.tasks.open, OpenRange(start, end, head.version, losses=losses), key=attrgetter("start"))


def recut(head: Head, taken: Sequence[OpenRange], policy: Policy, losses: int, alone: Container[int]) -> None:
    """Queue tasks again as a new generation, in chunks of the current size, or larger if the head has little room.

    Args:
        head: The package.
        taken: The parts of open ranges that have these tasks.
        policy: The settings of the deployment.
        losses: The number of workers that were lost with these tasks, as the give-back says. A give-back must not reset
            this number: otherwise a task that kills workers would stay unnoticed if other workers give it back in
            between. A task that is alone in a chunk for the first time starts at 0: the workers may have been lost
            because of a different task in the earlier chunk.
        alone: The tasks that were alone in their open ranges before.
    """
    # Before durations are measured, `_chunk` divides a few tasks of a give-back into chunks of one task. Without this
    # bound, a large fleet that gives back tasks would fill the head with more chunks than its executors need.
    largest = 2 * planning.largest_window(head.pace.most_executors, policy)
    most = min(len(head.tasks.open) + head.tasks.free_entries, largest)
    for number, each in enumerate(taken):
        left = len(taken) - number - 1
        start = each.start
        while start < each.end:
            rest = each.end - start
            # Each range that is still to come needs an entry. This range uses at most half of the other entries, so
            # that the later ranges can be cut into several chunks, too.
            parts = max(1, (most - len(head.tasks.open) - left) // 2)
            end = start + max(_chunk(head, rest, policy), -(-rest // parts))
            is_new = end - start == 1 and start not in alone
            queue(head, start, end, 0 if is_new else max(losses, each.losses))
            start = end


def halve(head: Head, lost: OpenRange) -> None:
    """Queue a lost range again as two halves.

    If the range has one task, or the head has no room for two ranges, queue it as it is.
    """
    tasks = head.tasks
    # Only the first range may use the spare entries: if every range could, the head could outgrow its bound.
    spare = HALVINGS if lost == tasks.open[0] else 0
    tasks.open.remove(lost)
    if lost.end - lost.start == 1 or head.tasks.free_entries + spare < 2:
        queue(head, lost.start, lost.end)
        return
    middle = (lost.start + lost.end + 1) // 2
    queue(head, lost.start, middle)
    queue(head, middle, lost.end)


def refill(head: Head, policy: Policy) -> None:
    """Cut chunks from the uncut tasks until the window is full, or the head has no room for more.

    If the reserve is spent, nothing is cut: the account might be unable to pay for the work in the queue.
    """
    tasks = head.tasks
    room = ENTRIES - len(tasks.cancelled) - len(tasks.stopping) - RESERVED
    most = min(head.pace.window, max(SMALL_WINDOW, room))
    while head.uncut and len(tasks.open) < most and not head.quota.reserve_spent:
        free = ranges.subtract([(tasks.cursor, tasks.count)], tasks.cancelled)
        if not free:
            tasks.cursor = tasks.count
            return
        start, end = free[0]
        end = start + _chunk(head, end - start, policy)
        queue(head, start, end)
        tasks.cursor = end


def choose_queues(head: Head, policy: Policy) -> None:
    """Decide for each chunk that this fold has cut whether it goes by the express queue."""
    opened = head.tasks.open
    cut = [at for at, each in enumerate(opened) if each.generation == head.version]
    if not cut:
        return
    until = planning.express_until(head, policy)
    for at in cut:
        # A chunk with which workers were lost does not go by the express queue: such a chunk would delay new packages
        # each time.
        opened[at] = replace(opened[at], express=opened[at].start < until and not opened[at].losses)


def mark_sent(head: Head, chunks: Sequence[tuple[int, int, int]]) -> None:
    """Record that these chunks (start, end, generation) are in the queue. Chunks that are not open are ignored."""
    opened = head.tasks.open
    for start, end, generation in chunks:
        for at in head.tasks.among([(start, end)]):
            if opened[at].generation == generation:
                opened[at] = replace(opened[at], sent=True)


def _chunk(head: Head, rest: int, policy: Policy) -> int:
    tasks = head.tasks
    return (
        planning.chunk_size(rest, tasks.count, head.pace, policy)
        if tasks.chunksize is None
        else min(tasks.chunksize, rest)
    )
