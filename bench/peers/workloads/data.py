"""Large arguments and results."""

from typing import Any

import numpy as np

from bench.peers.engine import Engine
from bench.peers.rows import Load

from .warm import timed, warm


def same(value: bytes) -> bytes:
    """Return the argument."""
    return value


def twice(array: Any) -> Any:
    """Return an array of the same size."""
    return array * 2


def texts(load: Load) -> list[bytes]:
    """Return different arguments of equal size."""
    return [bytes([number % 256]) * load.size_bytes for number in range(load.tasks)]


@warm
def send(engine: Engine, load: Load) -> dict[str, float]:
    """Send arguments to tasks that return the lengths."""
    values = texts(load)
    seconds = timed(lambda: engine.map(len, values))
    assert engine.map(len, values[:1]) == [load.size_bytes]
    return {"seconds": seconds}


@warm
def echo(engine: Engine, load: Load) -> dict[str, float]:
    """Send arguments to tasks that return them."""
    values, results = texts(load), []
    seconds = timed(lambda: results.extend(engine.map(same, values)))
    assert results == values
    return {"seconds": seconds}


@warm
def double(engine: Engine, load: Load) -> dict[str, float]:
    """Send arrays to tasks that return arrays."""
    values = [np.full(max(1, load.size_bytes // 8), number, dtype=np.float64) for number in range(load.tasks)]
    results: list[Any] = []
    seconds = timed(lambda: results.extend(engine.map(twice, values)))
    assert [result[-1] for result in results] == [2.0 * number for number in range(load.tasks)]
    return {"seconds": seconds}
