"""Shapes of work: chains, trees, nesting, streams, skew, many waiting calls, files."""

import tempfile
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from PIL import Image

from cloudpar import Pool

from .engines import CloudparEngine, Engine, JoblibEngine
from .program import CLOUDPAR, JOBLIB, Program

IMAGES = Path(tempfile.gettempdir()) / "cloudpar-bench-images"


def paint() -> None:
    """100 pictures of 800 x 600."""
    IMAGES.mkdir(exist_ok=True)
    for number in range(100):
        pixels = np.random.default_rng(number).integers(0, 255, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels.repeat(10, 0).repeat(10, 1)).save(IMAGES / f"{number:03}.png")


def shrink(path: Path) -> int:
    """To a thumbnail; the sum of its pixels."""
    with Image.open(path) as picture:
        return int(np.asarray(picture.resize((80, 60), Image.Resampling.LANCZOS)).sum())


def images(engine: Engine) -> object:
    """Read by their paths."""
    return sum(engine.map(shrink, sorted(IMAGES.glob("*.png"))))


def request(number: int) -> int:
    """Waits, as a call of a web service does."""
    time.sleep(0.1)
    return number


def waiting(engine: Engine) -> object:
    """200 requests of 0.1 s on 20 processes."""
    return sum(engine.map(request, range(200)))


def load(number: int) -> Any:
    """1 MB."""
    return np.random.default_rng(number).standard_normal(131_072)


def clean(values: Any) -> Any:
    """Clips."""
    return np.clip(values, -2, 2)


def score(values: Any) -> float:
    """The mean of what is left."""
    return float(np.sort(values)[1_000:-1_000].mean())


def chains(engine: Engine) -> object:
    """Load, clean, score: three maps, one after the other."""
    return round(sum(engine.map(score, engine.map(clean, engine.map(load, range(60))))), 9)


def add(pair: tuple[Any, Any]) -> Any:
    """Two arrays."""
    return pair[0] + pair[1]


def tree(engine: Engine) -> object:
    """The sum of 32 arrays of 1 MB, pair by pair."""
    level = engine.map(load, range(32))
    while len(level) > 1:
        level = engine.map(add, list(zip(level[::2], level[1::2], strict=True)))
    return round(float(level[0].sum()), 6)


def leaf(number: int) -> int:
    """10 ms of its thread: joblib runs two of them as threads of one process when it nests."""
    deadline = time.thread_time() + 0.01
    while time.thread_time() < deadline:
        pass
    return number


def branch_by_pool(number: int) -> int:
    """Maps inside a task: the pool finds its master by itself."""
    with Pool() as pool:
        return sum(pool.map(leaf, range(10 * number, 10 * number + 10)))


def branch_by_joblib(number: int) -> int:
    """Joblib inside joblib."""
    return sum(joblib.Parallel(n_jobs=2)(joblib.delayed(leaf)(each) for each in range(10 * number, 10 * number + 10)))


def nesting(engine: Engine) -> object:
    """Eight tasks that map ten each."""
    return sum(engine.map(branch_by_pool if isinstance(engine, CloudparEngine) else branch_by_joblib, range(8)))


def streams(engine: Engine) -> object:
    """5,000 values of a generator, of which few are in memory at a time."""
    values = (number % 1_000 for number in range(5_000))
    if isinstance(engine, CloudparEngine):
        return sum(engine.pool.map(abs, values, buffersize=500))
    if isinstance(engine, JoblibEngine):
        parallel = joblib.Parallel(n_jobs=2, return_as="generator")
        return sum(parallel(joblib.delayed(abs)(value) for value in values))
    return sum(engine.map(abs, values))


def uneven(number: int) -> int:
    """1 in 50 takes 50 times longer than 4 ms."""
    deadline = time.process_time() + (0.2 if number % 50 == 49 else 0.004)
    while time.process_time() < deadline:
        pass
    return number


def skew(engine: Engine) -> object:
    """300 of them."""
    return sum(engine.map(uneven, range(300)))


def short(number: int) -> int:
    """50 ms."""
    time.sleep(0.05)
    return number


def many(engine: Engine) -> object:
    """4,000 tasks of 50 ms on 40 processes."""
    return sum(engine.map(short, range(4_000)))


PROGRAMS = (
    Program("images", "100 thumbnails", images, prepare=paint),
    Program("waiting", "200 x 0.1 s of waiting on 20 processes", waiting, workers=20),
    Program("chains", "60 x load, clean, score with 1 MB between them", chains),
    Program("tree", "the sum of 32 arrays of 1 MB, pair by pair", tree),
    Program("nesting", "8 tasks that map 10 tasks of 10 ms", nesting, (CLOUDPAR, JOBLIB)),
    Program("streams", "5,000 values of a generator", streams),
    Program("skew", "300 tasks, 1 in 50 takes 50 times longer", skew),
    Program("many", "4,000 x 50 ms on 40 processes", many, workers=40),
)
