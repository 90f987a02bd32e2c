"""The price of an Asian call option by Monte-Carlo simulation, with its standard error.

    pip install '.[examples]'
    python examples/option_pricing.py --paths 2000000

Such an option pays what the average price of a share lies above the strike. There is no closed formula for it. Each
task simulates a batch of paths with a random generator of its own, so the result is the same on any number of cores.
"""

import argparse
import math
from typing import NamedTuple

import numpy as np

from cloudpar import Pool


class Option(NamedTuple):
    """What is priced: prices in one currency, the rate and the volatility for a year, the time in years."""

    spot: float = 100.0
    strike: float = 100.0
    rate: float = 0.03
    volatility: float = 0.2
    years: float = 1.0
    days: int = 252


def simulate(seed: np.random.SeedSequence, option: Option, paths: int) -> tuple[int, float, float]:
    """The number of paths, and the sums of their discounted payoffs and of the payoffs' squares."""
    generator = np.random.default_rng(seed)
    step = option.years / option.days
    drift = (option.rate - option.volatility**2 / 2) * step
    moves = drift + option.volatility * math.sqrt(step) * generator.standard_normal((paths, option.days))
    average = (option.spot * np.exp(np.cumsum(moves, axis=1))).mean(axis=1)
    payoff = math.exp(-option.rate * option.years) * np.maximum(average - option.strike, 0.0)
    return paths, float(payoff.sum()), float((payoff**2).sum())


def main() -> None:
    """Split the paths into batches, and add up what comes back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paths", type=int, default=400_000)
    parser.add_argument("--batch", type=int, default=10_000, help="paths of one task")
    arguments = parser.parse_args()
    batches = -(-arguments.paths // arguments.batch)
    seeds = np.random.SeedSequence(2026).spawn(batches)  # independent, however many tasks run at a time
    with Pool() as pool:
        sums = pool.map(lambda seed: simulate(seed, Option(), arguments.batch), seeds)
        count, total, squares = (sum(column) for column in zip(*sums, strict=True))
    price = total / count
    error = math.sqrt((squares / count - price**2) / count)
    print(f"{count:,} paths in {batches} tasks: {price:.4f} +/- {error:.4f}")


if __name__ == "__main__":
    main()
