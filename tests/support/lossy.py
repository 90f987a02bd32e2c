"""A connection to a master that loses answers: the master has carried out the request, and the client does not know."""

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from cloudpar_protocol import routes
from support.forwarders import Proxy, serving

ONE_IN = 5
"""On each path, one answer is lost in this many in a row, at a random position."""

PATHS = {route.path for route in routes.ROUTES}


class LossyLine(Proxy):
    """Passes all requests to the master and loses some answers to calls: of some nothing arrives, of some a half.

    Attributes:
        calls: The number of calls by path.
        lost: The number of lost answers by path.
    """

    def __init__(self, endpoint: str, seed: int) -> None:
        super().__init__(endpoint)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.calls: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._chosen: dict[str, int] = {}
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def arrives(self, path: str, size: int) -> int:
        """Record an answered call, and return how many bytes of its answer are sent on."""
        if path not in PATHS:
            return size  # a payload
        with self._lock:
            turn = self.calls[path] % ONE_IN
            self.calls[path] += 1
            if turn == 0:
                self._chosen[path] = self._random.randrange(ONE_IN)
            if turn != self._chosen[path]:
                return size
            self.lost[path] += 1
            return self._random.choice([0, size // 2])


@contextmanager
def lossy_line(endpoint: str, seed: int) -> Iterator[LossyLine]:
    """Start such a connection."""
    with LossyLine(endpoint, seed) as line, serving(line):
        yield line
