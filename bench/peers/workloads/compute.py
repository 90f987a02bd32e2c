"""Tasks that compute. They measure their processor time, because other processes may share their cores."""

import random
import time
from functools import partial

from bench.peers.engine import WORKERS, Engine
from bench.peers.rows import Load
from cloudpar.demo.factorization import calibrate, correct, factorize, problem

from .warm import timed, warm

LIKE_THE_DEMO, SEED = 500, 1
LONG_EVERY, LONGER = 100, 100


def measured_factorize(number: int) -> tuple[tuple[int, int], float]:
    """Factorize, and return the factors and the processor time that this took."""
    began = time.thread_time()
    factors = factorize(number)
    return factors, time.thread_time() - began


@warm
def factorizations(engine: Engine, load: Load) -> dict[str, float]:
    """Factorize numbers of the demo's size, 20 ms each: the part of two cores' time that the tasks got, in percent."""
    numbers = problem(load.tasks, calibrate(LIKE_THE_DEMO), SEED)
    results: list[tuple[tuple[int, int], float]] = []
    wall_s = timed(lambda: results.extend(engine.map(measured_factorize, numbers)))
    assert correct(numbers, [factors for factors, _ in results])
    return {"efficiency": 100 * sum(cpu_s for _, cpu_s in results) / (WORKERS * wall_s)}


def busy(duration_ms: int) -> None:
    """Compute for so many milliseconds of this thread's processor time."""
    deadline = time.thread_time() + duration_ms / 1_000
    while time.thread_time() < deadline:
        pass


@warm
def equal(engine: Engine, load: Load) -> dict[str, float]:
    """Run tasks of the same length."""
    return {"seconds": timed(partial(engine.map, busy, [load.task_ms] * load.tasks))}


@warm
def skewed(engine: Engine, load: Load) -> dict[str, float]:
    """Run tasks of which 1 in 100 takes 100 times as long, in an order that fits no size of chunks."""
    durations = [load.task_ms * (LONGER if number % LONG_EVERY == 0 else 1) for number in range(load.tasks)]
    random.Random(SEED).shuffle(durations)
    return {"seconds": timed(partial(engine.map, busy, durations))}
