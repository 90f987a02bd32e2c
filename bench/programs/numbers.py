"""Arithmetic: Monte Carlo, linear algebra, optimization, seeds."""

from typing import Any

import numpy as np
import optuna
from scipy.optimize import differential_evolution

from .engines import Engine
from .program import Program


def asian_option(seed: int) -> float:
    """Price an Asian option from 20,000 paths of 64 steps."""
    draws = np.random.default_rng(seed).standard_normal((20_000, 64))
    paths = 100 * np.exp(np.cumsum(draws * 0.025 - 0.0003, axis=1))
    return float(np.maximum(paths.mean(axis=1) - 100, 0).mean())


def monte_carlo(engine: Engine) -> object:
    return round(float(np.mean(engine.map(asian_option, range(60)))), 9)


def largest_singular_value(seed: int) -> float:
    """Compute the largest singular value of a matrix of 300 x 300; BLAS starts as many threads as it may."""
    matrix = np.random.default_rng(seed).standard_normal((300, 300))
    return float(np.linalg.svd(matrix)[1][0])


def svds(engine: Engine) -> object:
    return [round(value, 6) for value in engine.map(largest_singular_value, range(60))]


def rosenbrock(point: Any) -> float:
    """Evaluate Rosenbrock's function, with extra work as in a simulation."""
    np.linalg.eigvalsh(np.outer(point, point).repeat(12, 0).repeat(12, 1))
    return float(np.sum(100 * (point[1:] - point[:-1] ** 2) ** 2 + (1 - point[:-1]) ** 2))


def evolution(engine: Engine) -> object:
    """Run SciPy's differential evolution, which accepts any map."""
    found = differential_evolution(
        rosenbrock, [(-2, 2)] * 4, workers=engine.map, updating="deferred", seed=1, maxiter=15, polish=False
    )
    return round(float(found.fun), 9)


def objective(parameters: dict[str, float]) -> float:
    """Evaluate a trial, with some milliseconds of fitting."""
    x = np.linspace(0, 1, 20_000)
    for _ in range(10):
        y = np.sin(parameters["frequency"] * x) * np.exp(-parameters["damping"] * x)
    return float(np.abs(y - np.sin(9 * x)).mean())


def optuna_study(engine: Engine) -> object:
    """Run Optuna's ask-and-tell interface with twelve trials at a time."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    for _ in range(6):
        trials = [study.ask() for _ in range(12)]
        asked = [{name: trial.suggest_float(name, 0, 20) for name in ("frequency", "damping")} for trial in trials]
        for trial, value in zip(trials, engine.map(objective, asked), strict=True):
            study.tell(trial, value)
    return round(study.best_value, 9)


def draw(_: int) -> float:
    """Draw from NumPy's global generator.

    Processes that are forked from one process would all start with the same state of this generator.
    """
    return float(np.random.random())  # noqa: NPY002 - that is the program


def seeds(engine: Engine) -> object:
    """Count the different numbers that 200 tasks draw."""
    return len(set(engine.map(draw, range(200))))


PROGRAMS = (
    Program("monte-carlo", "60 blocks of 20,000 paths", monte_carlo),
    Program("svds", "60 SVDs of 300 x 300", svds),
    Program("scipy", "differential evolution with workers=map", evolution),
    Program("optuna", "72 trials, 12 at a time", optuna_study),
    Program("seeds", "200 draws from NumPy's global generator, all different", seeds),
)
