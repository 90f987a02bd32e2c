"""The thread that calls joblib's callbacks."""

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

Callback = Callable[[Future[Any]], None]


class Callbacks:
    """Calls joblib's callbacks in a thread of its own.

    A callback takes the next calls from the program's iterator and serializes them. In the thread that delivers the
    pool's results this would delay all other results, and an iterator that reads the same pool would never end.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callback, Future[Any]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = False
        weakref.finalize(self, self._queue.put, None)

    def put(self, callback: Callback, future: Future[Any]) -> None:
        """Call a callback soon."""
        with self._lock:
            if not self._started:
                threading.Thread(target=_call_back, args=(self._queue,), name="cloudpar-joblib", daemon=True).start()
                self._started = True
        self._queue.put((callback, future))


def _call_back(queue: "SimpleQueue[tuple[Callback, Future[Any]] | None]") -> None:
    while (item := queue.get()) is not None:
        callback, future = item
        callback(future)
        del item, callback, future  # they may keep the backend alive, and then this thread would never end
