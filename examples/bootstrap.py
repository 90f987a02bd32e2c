"""A confidence interval for a figure of a data frame, by the bootstrap.

    pip install '.[examples]'
    python examples/bootstrap.py --resamples 2000

The question: how much more do customers spend who got the newsletter? The program draws the rows of the table again and
again, with replacement, and computes the figure of each resample. The middle 95 % of these figures are the interval.
"""

import argparse

import numpy as np
import pandas as pd

from cloudpar import Pool


def sample_orders(rows: int) -> pd.DataFrame:
    """A table of orders. Put your own in its place: `pd.read_csv(...)`."""
    generator = np.random.default_rng(7)
    newsletter = generator.random(rows) < 0.4
    amount = generator.lognormal(3.0, 0.8, rows) * np.where(newsletter, 1.15, 1.0)
    region = generator.choice(["north", "south", "west"], rows)
    return pd.DataFrame({"region": region, "newsletter": newsletter, "amount": amount})


def uplift(orders: pd.DataFrame) -> float:
    """How much more they spend, in per cent: the mean of the regions, so that no region counts twice."""
    means = orders.pivot_table(values="amount", index="region", columns="newsletter", aggfunc="mean")
    return float(100 * (means[True] / means[False] - 1).mean())


def main() -> None:
    """Send the table once, and a seed for each resample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    arguments = parser.parse_args()
    orders = sample_orders(arguments.rows)

    def resample(seed: int) -> float:
        """The figure of one resample. The pool sends the table once, with this function, not once for each task."""
        chosen = np.random.default_rng(seed).integers(0, len(orders), len(orders))
        return uplift(orders.iloc[chosen])

    with Pool() as pool:
        figures = np.fromiter(pool.map(resample, range(arguments.resamples)), dtype=float)
    low, high = np.percentile(figures, [2.5, 97.5])
    print(f"uplift {uplift(orders):.1f} %, 95 % interval {low:.1f} to {high:.1f} %, {len(figures):,} resamples")


if __name__ == "__main__":
    main()
