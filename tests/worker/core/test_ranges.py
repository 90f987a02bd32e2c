"""Arithmetic of ranges, compared with sets."""

from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol.payloads import Range
from cloudpar_worker.core import ranges


def build(numbers: set[int]) -> list[Range]:
    made: list[Range] = []
    for number in numbers:
        made = ranges.add(made, (number, number + 1))
    return made


def expand(of: list[Range]) -> list[int]:
    return [number for start, end in of for number in range(start, end)]


NUMBERS = st.sets(st.integers(0, 30))


@given(NUMBERS, NUMBERS, st.integers(0, 40))
def test_ranges_behave_like_sets_of_tasks(left: set[int], right: set[int], tasks: int) -> None:
    ours, theirs = build(left), build(right)
    assert expand(ours) == sorted(left)
    assert ranges.count(ours) == len(left)
    assert expand(ranges.intersect(ours, theirs)) == sorted(left & right)
    assert all(ranges.contains(ours, number) == (number in left) for number in range(31))
    head, tail = ranges.cut_tail(ours, tasks)
    assert expand(head) + expand(tail) == sorted(left)
    assert ranges.count(tail) == min(tasks, len(left))


def test_neighbouring_ranges_are_joined() -> None:
    assert ranges.add([(0, 2), (4, 6)], (2, 4)) == [(0, 6)]
