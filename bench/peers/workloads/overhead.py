"""What a library costs without any work. This module imports little, so that a cold start finds nothing imported."""

import math
import time

from bench.peers.engine import Engine, Open
from bench.peers.rows import Load

from .warm import no_op, timed, warm

SETTLE_S, LONGEST_S = 1.0, 10.0


def start(start: Open, _: Load) -> dict[str, float]:
    """Measure a cold start: the import, the start of the processes, and one call."""
    began = time.perf_counter()
    with start(None) as engine:
        assert engine.call(abs, -1) == 1
        return {"seconds": time.perf_counter() - began}


@warm
def round_trips(engine: Engine, load: Load) -> dict[str, float]:
    """Measure single calls, one after the other: all of them, or as many as ten seconds have room for."""
    time.sleep(SETTLE_S)  # the pool acknowledges packages up to a second after it has read their results
    trips_s: list[float] = []
    while len(trips_s) < load.tasks and sum(trips_s) < LONGEST_S:
        trips_s.append(timed(lambda: engine.call(no_op, 0)))
    trips_s.sort()
    return {f"p{percent}": 1_000 * trips_s[math.ceil(len(trips_s) * percent / 100) - 1] for percent in (50, 99)}


@warm
def no_ops(engine: Engine, load: Load) -> dict[str, float]:
    """Measure one map."""
    return {"seconds": timed(lambda: engine.map(no_op, range(load.tasks)))}
