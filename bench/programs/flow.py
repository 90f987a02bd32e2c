"""Shapes of work: chains, trees, nesting, streams, tasks of unequal length, many waiting calls, files."""

import tempfile
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from PIL import Image

from cloudpar import Pool

from .engines import CLOUDPAR, JOBLIB, Engine
from .program import Program

IMAGES = Path(tempfile.gettempdir()) / "cloudpar-bench-images"


def paint() -> None:
    """Write 100 pictures of 800 x 600 pixels."""
    IMAGES.mkdir(exist_ok=True)
    for number in range(100):
        pixels = np.random.default_rng(number).integers(0, 255, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels.repeat(10, 0).repeat(10, 1)).save(IMAGES / f"{number:03}.png")


def shrink(path: Path) -> int:
    """Make a thumbnail and return the sum of its pixels."""
    with Image.open(path) as picture:
        return int(np.asarray(picture.resize((80, 60), Image.Resampling.LANCZOS)).sum())


def images(engine: Engine) -> object:
    """Shrink all pictures."""
    return sum(engine.map(shrink, sorted(IMAGES.glob("*.png"))))


def request(number: int) -> int:
    """Wait, as a call of a web service does."""
    time.sleep(0.1)
    return number


def waiting(engine: Engine) -> object:
    return sum(engine.map(request, range(200)))


def load(number: int) -> Any:
    """Return an array of 1 MB."""
    return np.random.default_rng(number).standard_normal(131_072)


def clean(values: Any) -> Any:
    return np.clip(values, -2, 2)


def score(values: Any) -> float:
    return float(np.sort(values)[1_000:-1_000].mean())


def chains(engine: Engine) -> object:
    """Load, clean and score in three maps, one after the other."""
    return round(sum(engine.map(score, engine.map(clean, engine.map(load, range(60))))), 9)


def add(pair: tuple[Any, Any]) -> Any:
    return pair[0] + pair[1]


def tree(engine: Engine) -> object:
    level = engine.map(load, range(32))
    while len(level) > 1:
        level = engine.map(add, list(zip(level[::2], level[1::2], strict=True)))
    return round(float(level[0].sum()), 6)


def leaf(number: int) -> int:
    """Compute for 10 ms of this thread's processor time.

    Nested joblib runs two such calls as threads of one process, whose processor time they would share.
    """
    deadline = time.thread_time() + 0.01
    while time.thread_time() < deadline:
        pass
    return number


def branch_by_pool(number: int) -> int:
    """Map inside a task. `Pool()` there is the pool that runs the task."""
    with Pool() as pool:
        return sum(pool.map(leaf, range(10 * number, 10 * number + 10)))


def branch_by_joblib(number: int) -> int:
    """Nest joblib in joblib."""
    return sum(joblib.Parallel(n_jobs=2)(joblib.delayed(leaf)(each) for each in range(10 * number, 10 * number + 10)))


def nesting(engine: Engine) -> object:
    return sum(engine.map(branch_by_pool if engine.name == CLOUDPAR else branch_by_joblib, range(8)))


def streams(engine: Engine) -> object:
    """Map over a generator. The pool and joblib keep only some of its values in memory at a time."""
    values = (number % 1_000 for number in range(5_000))
    if engine.pool is not None:
        return sum(engine.pool.map(abs, values, buffersize=500))
    if engine.name == JOBLIB:
        parallel = joblib.Parallel(n_jobs=2, return_as="generator")
        return sum(parallel(joblib.delayed(abs)(value) for value in values))
    return sum(engine.map(abs, values))


def uneven(number: int) -> int:
    """Compute for 4 ms; 1 call in 50 takes 50 times as long."""
    deadline = time.process_time() + (0.2 if number % 50 == 49 else 0.004)
    while time.process_time() < deadline:
        pass
    return number


def skew(engine: Engine) -> object:
    return sum(engine.map(uneven, range(300)))


def short(number: int) -> int:
    """Sleep for 50 ms."""
    time.sleep(0.05)
    return number


def many(engine: Engine) -> object:
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
