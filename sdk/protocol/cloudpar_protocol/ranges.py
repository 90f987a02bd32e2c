"""Sets of task numbers as sorted, disjoint, non-adjacent ranges [start, end).

>>> subtract([(0, 10)], [(2, 4), (8, 20)])
[(0, 2), (4, 8)]
>>> union([(0, 2)], [(2, 4), (8, 9)])
[(0, 4), (8, 9)]
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from .payloads import Range


def union(*sets: Iterable[Range]) -> list[Range]:
    """Return the numbers that are in any of the sets. The inputs may overlap, be unsorted, and have empty ranges."""
    joined: list[Range] = []
    for start, end in sorted(piece for numbers in sets for piece in numbers if piece[0] < piece[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def subtract(numbers: Iterable[Range], taken: Sequence[Range]) -> list[Range]:
    """Return the numbers that are not in `taken`, which must be a sorted set."""
    left: list[Range] = []
    for start, end in numbers:
        at = start
        for low, high in _reaching(taken, start, end):
            if low > at:
                left.append((at, low))
            at = max(at, high)
        if at < end:
            left.append((at, end))
    return left


def intersect(numbers: Iterable[Range], others: Sequence[Range]) -> list[Range]:
    """Return the numbers that are in both sets; `others` must be sorted."""
    return [
        (max(start, low), min(end, high))
        for start, end in numbers
        for low, high in _reaching(others, start, end)
        if max(start, low) < min(end, high)
    ]


def contains(numbers: Sequence[Range], number: int) -> bool:
    """Whether a sorted set contains the number."""
    at = bisect_right(numbers, (number, float("inf"))) - 1
    return at >= 0 and number < numbers[at][1]


def size(numbers: Iterable[Range]) -> int:
    """Return the number of elements in a set."""
    return sum(end - start for start, end in numbers)


def of(indices: Iterable[int]) -> list[Range]:
    """Make a set of numbers, which must be in ascending order, each only once.

    >>> of([1, 2, 3, 7])
    [(1, 4), (7, 8)]
    """
    ranges: list[Range] = []
    for index in indices:
        if ranges and ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return ranges


def cut_tail(numbers: Sequence[Range], most: int) -> tuple[list[Range], list[Range]]:
    """Divide a sorted set into two: all but its last `most` numbers, and these last numbers.

    >>> cut_tail([(0, 3), (5, 9)], 5)
    ([(0, 2)], [(2, 3), (5, 9)])
    """
    left = list(numbers)
    tail: list[Range] = []
    while most > 0 and left:
        start, end = left.pop()
        middle = max(start, end - most)
        if start < middle:
            left.append((start, middle))
        tail.insert(0, (middle, end))
        most -= end - middle
    return left, tail


def _reaching(numbers: Sequence[Range], start: int, end: int) -> Sequence[Range]:
    """Return the part of a sorted set that may overlap [start, end)."""
    first = max(0, bisect_right(numbers, (start, float("inf"))) - 1)
    return numbers[first : bisect_left(numbers, (end,), first)]
