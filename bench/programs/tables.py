"""Data frames and large arrays: a frame that the function captures, rows of a frame, Polars, arrays as arguments."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from .engines import CLOUDPAR, JOBLIB, Engine
from .program import Program


@cache
def frame(rows: int) -> pd.DataFrame:
    """Return three columns of numbers."""
    draws = np.random.default_rng(1).standard_normal((rows, 3))
    return pd.DataFrame(draws, columns=["a", "b", "c"])


def bootstrap(engine: Engine) -> object:
    data = frame(2_000_000)

    def resample(seed: int) -> float:
        rows = np.random.default_rng(seed).integers(0, len(data), 200_000)
        return float(data["a"].to_numpy()[rows].mean())

    return round(float(np.std(engine.map(resample, range(40)))), 12)


def total(row: Any) -> float:
    """Add up one row, as `itertuples` yields it."""
    return float(row.a + row.b + row.c)


def rows(engine: Engine) -> object:
    """Map over rows of `itertuples`, whose class pandas makes at run time."""
    return round(sum(engine.map(total, frame(20_000).itertuples())), 6)


def by_group(seed: int) -> float:
    """Group 300,000 rows; Polars would spread this over all cores."""
    draws = np.random.default_rng(seed)
    table = pl.DataFrame({"key": draws.integers(0, 1_000, 300_000), "value": draws.standard_normal(300_000)})
    return float(table.group_by("key").agg(pl.col("value").sum()).sort("key")["value"].to_numpy()[:10].sum())


def polars(engine: Engine) -> object:
    return [round(value, 6) for value in engine.map(by_group, range(40))]


def every_512th(array: Any) -> float:
    """Add up one of every 512 values of an array of 10 MB, so that nearly all the work is moving the array."""
    return float(array[::512].sum())


@cache
def large() -> list[Any]:
    """Return 24 arrays of 10 MB."""
    return [np.random.default_rng(seed).random(1_250_000) for seed in range(24)]


def arrays(engine: Engine) -> object:
    return round(sum(engine.map(every_512th, large())), 6)


PROGRAMS = (
    Program("bootstrap", "40 resamples of a captured frame of 48 MB", bootstrap),
    Program("arrays", "24 arrays of 10 MB as arguments", arrays, (CLOUDPAR, JOBLIB)),
    Program("rows", "20,000 rows by itertuples()", rows),
    Program("polars", "40 group-bys of 300,000 rows", polars),
)
