"""The benchmark's task: factorize the product of two random primes by trial division."""

import random
import time
from collections.abc import Callable, Sequence

SEQUENTIAL_S = 10.0
"""The approximate time, in seconds, that all tasks take one after the other on the machine that ran the calibration."""

CALIBRATION_PRIME = 400_009


def factorize(number: int) -> tuple[int, int]:
    """Return the smallest factor above 1, and the quotient.

    Example:
        >>> factorize(91), factorize(97), factorize(64)
        ((7, 13), (97, 1), (2, 32))
    """
    if number % 2 == 0:
        return 2, number // 2
    divisor = 3
    while divisor * divisor <= number:
        if number % divisor == 0:
            return divisor, number // divisor
        divisor += 2
    return number, 1


def problem(tasks: int, largest: int, seed: int) -> list[int]:
    """Return products of two primes, each between largest / 2 and largest; equal arguments give equal products.

    Example:
        >>> problem(3, 1000, seed=1)
        [518359, 383017, 695027]
    """
    generator = random.Random(seed)  # noqa: S311 - test data, not secrets
    return [_prime(generator, largest) * _prime(generator, largest) for _ in range(tasks)]


def _prime(generator: random.Random, largest: int) -> int:
    while True:
        candidate = generator.randrange(largest // 2, largest) | 1
        if factorize(candidate)[1] == 1:
            return candidate


def calibrate(tasks: int, clock: Callable[[], float] = time.process_time) -> int:
    """Find the size of primes for which `tasks` factorizations take about SEQUENTIAL_S on this machine.

    The size is rounded to two significant digits, so that repeated calibrations mostly agree.
    """
    # Measure processor time and take the shortest of many measurements, so that the load of other processes does not
    # change the result.
    division_s = min(_division_s(clock) for _ in range(25))
    divisions = SEQUENTIAL_S / tasks / division_s
    # Trial division tries every second number up to the smaller prime. If both primes are in [largest / 2, largest],
    # the smaller prime is on average 2/3 of largest.
    largest = min(max(divisions * 2 * 3 / 2, 1_000.0), 1e9)
    return int(float(f"{largest:.1e}"))


def _division_s(clock: Callable[[], float]) -> float:
    started_at = clock()
    factorize(CALIBRATION_PRIME * CALIBRATION_PRIME)
    return (clock() - started_at) / (CALIBRATION_PRIME / 2)


def correct(numbers: Sequence[int], results: Sequence[tuple[int, int]]) -> bool:
    """Return whether each number has a result, and each result is two factors above 1, the smaller factor first."""
    return len(numbers) == len(results) and all(
        1 < small <= large and small * large == number for number, (small, large) in zip(numbers, results, strict=True)
    )
