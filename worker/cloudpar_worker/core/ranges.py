"""Sorted lists of disjoint ranges [start, end)."""

from collections.abc import Iterable

from cloudpar_protocol.payloads import Range


def count(ranges: Iterable[Range]) -> int:
    """How many tasks lie in them."""
    return sum(end - start for start, end in ranges)


def contains(ranges: Iterable[Range], index: int) -> bool:
    """Whether a task lies in one of them."""
    return any(start <= index < end for start, end in ranges)


def intersect(left: list[Range], right: list[Range]) -> list[Range]:
    """What lies in both."""
    both: list[Range] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < end:
            both.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return both


def add(ranges: list[Range], new: Range) -> list[Range]:
    """With one more range, disjoint from the others; neighbours are joined.

    >>> add([(0, 2), (6, 8)], (2, 4))
    [(0, 4), (6, 8)]
    """
    joined: list[Range] = []
    for start, end in sorted([*ranges, new]):
        if joined and joined[-1][1] >= start:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def cut_tail(ranges: list[Range], tasks: int) -> tuple[list[Range], list[Range]]:
    """Without the last `tasks` tasks, and these."""
    head = list(ranges)
    tail: list[Range] = []
    while tasks > 0 and head:
        start, end = head.pop()
        middle = max(start, end - tasks)
        if start < middle:
            head.append((start, middle))
        tail.insert(0, (middle, end))
        tasks -= end - middle
    return head, tail
