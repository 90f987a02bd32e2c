import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar.demo.factorization import SEQUENTIAL_S, calibrate, correct, factorize, problem


@given(number=st.integers(2, 100_000))
def test_the_smallest_factor_and_the_rest(number: int) -> None:
    small, rest = factorize(number)
    assert small * rest == number
    assert all(number % divisor for divisor in range(2, min(small, 320)))
    assert small > 1


def test_a_problem_is_the_same_for_the_same_arguments() -> None:
    assert problem(50, 10_000, seed=1) == problem(50, 10_000, seed=1)
    assert problem(50, 10_000, seed=1) != problem(50, 10_000, seed=2)


@given(largest=st.integers(1000, 5000), seed=st.integers(0, 100))
def test_a_problem_is_made_of_two_primes_of_the_asked_size(largest: int, seed: int) -> None:
    for number in problem(3, largest, seed):
        for factor in factorize(number):
            assert factorize(factor) == (factor, 1)
            assert largest // 2 <= factor <= largest


@pytest.mark.parametrize("division_s", [2e-7, 1e-6, 1e-5])
def test_calibration_aims_at_ten_seconds(division_s: float) -> None:
    def clock() -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += division_s * 400_009 / 2
            yield now

    ticks = clock()
    largest = calibrate(500, lambda: next(ticks))
    numbers = problem(500, largest, seed=1)
    expected_s = sum(factor / 2 for factor in map(_smaller_factor, numbers)) * division_s
    assert math.isclose(expected_s, SEQUENTIAL_S, rel_tol=0.1)
    assert float(f"{largest:.1e}") == largest


def _smaller_factor(number: int) -> int:
    """Return the smaller factor of a product of two primes of similar size, by counting down from the root."""
    candidate = math.isqrt(number) | 1
    while number % candidate:
        candidate -= 2
    return candidate


def test_the_demo_reports_wrong_results() -> None:
    assert correct([15, 77], [(3, 5), (7, 11)])
    assert not correct([15, 77], [(3, 5)])
    assert not correct([15, 77], [(3, 5), (1, 77)])
    assert not correct([15, 77], [(7, 11), (3, 5)])
