"""Ten lines of real use: a pool on this machine, with nothing configured."""

import math

from cloudpar import Pool


def is_prime(number: int) -> bool:
    """By trial division, so that there is something to do."""
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


with Pool(workers=2) as pool:
    # The pool sends functions of this file and lambdas by value; no `if __name__ == "__main__"` is needed.
    numbers = range(1_000_000, 1_000_400)
    primes = [number for number, prime in zip(numbers, pool.map(is_prime, numbers), strict=True) if prime]
    print(f"{len(primes)} primes, the first is {primes[0]}")

    # One call is a future, as in concurrent.futures.
    future = pool.submit(math.factorial, 20)
    print(f"20! = {future.result()}")

    # An exception comes back as itself, where the value would be.
    try:
        pool.submit(math.sqrt, -1).result()
    except ValueError as error:
        print(f"sqrt(-1): {error}")

    # What the body of a parallel loop writes into the arrays and lists that it captures is here afterwards.
    squares = [0] * 10

    def square(i: int) -> None:
        """The body of the loop."""
        squares[i] = i * i

    pool.parallel_for(0, 10, square)
    print(f"squares: {squares}")

    report = pool.last_report
    if report is not None:
        print(f"the last package: {report.tasks} tasks, {report.execute_s * 1000:.1f} ms of execution charged")
