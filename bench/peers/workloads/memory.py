"""The memory of all processes of an engine, with that of the client."""

import os
import threading
import time
from types import TracebackType
from typing import Any, Self

import numpy as np

from bench.peers.engine import Open
from bench.peers.processes import pss_bytes
from bench.peers.rows import Load

from .data import texts
from .warm import no_op

MB = 1_000_000
PER_PAGE = 512
"""How many numbers of 8 bytes a page of 4 KiB has."""
BETWEEN_SAMPLES_S = 0.001
"""A short time: the load of a fast engine takes some milliseconds. A sample itself takes several."""
SETTLE_S = 1.0
REPEATS_FOR_S = 3.0
"""How long the load of `rest_and_peak` repeats, so that its peak is sampled for fast engines, too."""


class Peak:
    """Measures the memory again and again in a thread."""

    def __init__(self) -> None:
        self._samples: list[int] = []
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        # Without this, a peak of too few samples would look like a result. The block's own error says more.
        if self._error is not None and kind is None:
            raise self._error

    @property
    def size_bytes(self) -> int:
        """The largest sample."""
        return max(self._samples)

    def sample(self) -> None:
        """Measure now. A block calls this at its end, when the engine has done all its work."""
        self._samples.append(pss_bytes(os.getpid()))

    def _watch(self) -> None:
        try:
            while not self._ended.wait(BETWEEN_SAMPLES_S):
                self.sample()
        except Exception as error:  # noqa: BLE001 - __exit__ raises it in the thread that needs the peak
            self._error = error


def at(array: Any, index: int) -> float:
    """Read a value of each page, so that the whole array is in this process's memory, and return one value."""
    array[::PER_PAGE].sum()
    return float(array[index])


def shared(start: Open, load: Load) -> dict[str, float]:
    """Measure the peak while tasks read one array; the client's array is the first copy."""
    array = np.arange(load.size_bytes // 8, dtype=np.float64)
    with Peak() as peak, start(array) as engine:
        assert engine.map_on_array is not None
        results = engine.map_on_array(at, range(load.tasks))
        peak.sample()
        assert results == [float(index) for index in range(load.tasks)]
    return {"copies": peak.size_bytes / array.nbytes}


def rest_and_peak(start: Open, load: Load) -> dict[str, float]:
    """Measure an engine that has run a task and waits, and then the peak while tasks and data pass through it."""
    with start(None) as engine:
        engine.map(no_op, range(4))
        time.sleep(SETTLE_S)
        rest = pss_bytes(os.getpid())
        with Peak() as peak:
            values = texts(Load(10, load.size_bytes))
            repeat_until = time.monotonic() + REPEATS_FOR_S
            while True:
                engine.map(no_op, range(load.tasks))
                engine.map(len, values)
                if time.monotonic() >= repeat_until:
                    break
            peak.sample()
    return {"rest": rest / MB, "peak": max(rest, peak.size_bytes) / MB}
