"""A simulation as a parallel loop: how an epidemic may run, in many random runs.

    pip install '.[examples]'
    python examples/epidemic.py --runs 400

The body of the loop writes into an array, as it would in a plain `for` loop. After `parallel_for` the array of this
process has the rows of all runs.
"""

import argparse

import numpy as np

from cloudpar import Pool

PEOPLE, INFECTED = 100_000, 10
CONTACTS, INFECTIOUS_DAYS = 0.3, 7.0
"""How many people one infected person infects a day at the start, and for how many days."""


def main() -> None:
    """Simulate all runs, and print a curve with its range."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--days", type=int, default=180)
    arguments = parser.parse_args()
    days: int = arguments.days
    ill = np.zeros((arguments.runs, days), dtype=np.int64)

    def run(number: int) -> None:
        """One run: a row of `ill`. Its own seed makes it the same wherever it runs."""
        generator = np.random.default_rng([2026, number])
        susceptible, infected = PEOPLE - INFECTED, INFECTED
        for day in range(days):
            caught = generator.binomial(susceptible, 1 - np.exp(-CONTACTS * infected / PEOPLE))
            recovered = generator.binomial(infected, 1 / INFECTIOUS_DAYS)
            susceptible, infected = susceptible - caught, infected + caught - recovered
            ill[number, day] = infected

    with Pool() as pool:
        pool.parallel_for(0, arguments.runs, run)

    low, middle, high = np.percentile(ill, [5, 50, 95], axis=0)
    scale = max(float(high.max()), 1.0)
    print("day  ill people, median (5 % to 95 % of the runs)")
    for day in range(0, days, max(days // 12, 1)):
        bar = "#" * round(40 * float(middle[day]) / scale)
        print(f"{day:3}  {middle[day]:7,.0f} ({low[day]:,.0f} to {high[day]:,.0f}) {bar}")
    peaks = ill.max(axis=1)
    print(f"peak: {np.median(peaks):,.0f} ill people, on day {np.median(ill.argmax(axis=1)):.0f}")


if __name__ == "__main__":
    main()
