from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import Range

loose = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)
numbers = st.sets(st.integers(0, 40))


def numbers_of(given_ranges: list[Range]) -> set[int]:
    return {number for start, end in given_ranges for number in range(start, end)}


def is_canonical(given_ranges: list[Range]) -> bool:
    ends_before_next = all(one[1] < two[0] for one, two in pairwise(given_ranges))
    return ends_before_next and all(start < end for start, end in given_ranges)


@given(st.lists(loose, max_size=4))
def test_union_agrees_with_pythons_sets(sets: list[list[Range]]) -> None:
    joined = ranges.union(*sets)
    assert numbers_of(joined) == set().union(*map(numbers_of, sets))
    assert is_canonical(joined)


@given(numbers, st.integers(0, 50))
def test_cut_tail_cuts_off_the_last_numbers(all_numbers: set[int], most: int) -> None:
    left, tail = ranges.cut_tail(ranges.of(sorted(all_numbers)), most)
    assert is_canonical(left)
    assert is_canonical(tail)
    assert (numbers_of(left) | numbers_of(tail), ranges.size(tail)) == (all_numbers, min(most, len(all_numbers)))
    assert not left or not tail or left[-1][1] <= tail[0][0]


@given(loose, numbers)
def test_subtract_agrees_with_pythons_sets(minuend: list[Range], taken: set[int]) -> None:
    others = ranges.of(sorted(taken))
    assert numbers_of(ranges.subtract(minuend, others)) == numbers_of(minuend) - taken
    assert is_canonical(ranges.subtract(ranges.union(minuend), others))


@given(loose, numbers)
def test_intersect_agrees_with_pythons_sets(one: list[Range], two: set[int]) -> None:
    others = ranges.of(sorted(two))
    both = ranges.intersect(one, others)
    assert numbers_of(both) == numbers_of(one) & two
    assert all(start < end for start, end in both)
    assert is_canonical(ranges.intersect(ranges.union(one), others))


@given(numbers, st.integers(0, 41))
def test_contains_agrees_with_pythons_sets(some: set[int], number: int) -> None:
    assert ranges.contains(ranges.of(sorted(some)), number) == (number in some)


@given(numbers)
def test_ranges_of_numbers_have_the_size_of_the_set(some: set[int]) -> None:
    made = ranges.of(sorted(some))
    assert numbers_of(made) == some
    assert ranges.size(made) == len(some)
    assert is_canonical(made)
