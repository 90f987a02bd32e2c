"""A grid search: the settings of a model that predict best, by cross-validation.

    pip install '.[examples]'
    python examples/grid_search.py --rows 400

The model is a kernel ridge regression. Each task fits it with one pair of settings and tests it on one part of the
data, so a grid of 8 x 8 settings with 5 parts is 320 tasks. A pair of settings that does not work fails alone.
"""

import argparse
from collections import defaultdict
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloudpar import Pool

PARTS = 5


class Trial(NamedTuple):
    """One fit: the settings, and the part of the data that it is tested on."""

    width: float
    penalty: float
    part: int


def sample_data(rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points in the plane, and a noisy height of each. Put your own data in their place."""
    generator = np.random.default_rng(1)
    x = generator.uniform(-3, 3, (rows, 2))
    return x, np.sin(2 * x[:, 0]) * np.cos(x[:, 1]) + generator.normal(0, 0.2, rows)


def kernel(a: NDArray[np.float64], b: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """How near each point of `a` is to each point of `b`."""
    distances: NDArray[np.float64] = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-distances / (2 * width**2))


def main() -> None:
    """Run all trials, and print the best settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--points", type=int, default=8, help="values of each setting")
    arguments = parser.parse_args()
    x, y = sample_data(arguments.rows)

    def error(trial: Trial) -> float:
        """The mean squared error on the tested part. The pool sends `x` and `y` once, with the function."""
        tested = np.arange(len(y)) % PARTS == trial.part
        near = kernel(x[~tested], x[~tested], trial.width)
        weights = np.linalg.solve(near + trial.penalty * np.eye(len(near)), y[~tested])
        return float(((kernel(x[tested], x[~tested], trial.width) @ weights - y[tested]) ** 2).mean())

    widths, penalties = np.logspace(-1.5, 1, arguments.points), np.logspace(-4, 1, arguments.points)
    trials = [Trial(*each) for each in product(widths.tolist(), penalties.tolist(), range(PARTS))]
    errors: dict[tuple[float, float], list[float]] = defaultdict(list)
    with Pool() as pool:
        for trial, result in zip(trials, pool.map(error, trials, return_exceptions=True), strict=True):
            errors[trial.width, trial.penalty].append(np.inf if isinstance(result, BaseException) else result)
    (width, penalty), best = min(errors.items(), key=lambda entry: float(np.mean(entry[1])))
    print(f"{len(trials)} fits; best: width {width:.3g}, penalty {penalty:.3g}, mean squared error {np.mean(best):.4f}")


if __name__ == "__main__":
    main()
